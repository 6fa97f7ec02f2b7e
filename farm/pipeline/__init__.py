"""THE FLOW: one call a stage; the only package that knows every stage.

lab.open_lab          files -> Lab (inventory, profiles, payloads)
runs.plan_sweep       Lab x sweep -> Plan
runs.create_run       Plan -> a run in the store
runs.execute          drives the boards until every trial is decided
show.…                store -> results, comparison, report
sim.…, demo.…         the simulated lab, and a whole night in a minute
"""
