"""The machines of each maker.

A link is a `Link`: the rate that its maker says and, where something was published, the rate that
it reaches. α is of our choice where ``docs/networks.md`` names no source.
"""
