"""The command line `semblance`: above all other folders, and may import each of them.

`app` has the commands of one request each, and the names of the others, a module each; `options`, `progress` and
`render` are what they share.
"""
