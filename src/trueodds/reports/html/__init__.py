"""The pages of an audit and of a comparison of models: self-contained HTML that loads and sends nothing."""
