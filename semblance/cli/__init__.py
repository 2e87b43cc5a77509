"""The command line `semblance`: above all other folders, and may import each of them.

`app` has the commands of one request each, `commands` the names of the others, a module each; `options`, `progress`,
`render` and `exits` are what they share.
"""
