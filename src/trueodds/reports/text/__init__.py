"""The text and tables of an audit report, shared by the terminal and the HTML page."""
