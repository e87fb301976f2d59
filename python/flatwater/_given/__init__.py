"""What a program gives: types of arguments, options for the forms of values, values with adapters, and functions."""
