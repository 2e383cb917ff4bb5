"""How does one class's curve come about, and how do curves make a row?"""
