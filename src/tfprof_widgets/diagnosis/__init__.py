"""Why a profile is empty, or has no GPU in it: what can be seen of it in a report, and on this machine.

`report_checks` looks at a profile and is cheap: every report's notes come from it. `result` has the doctor, who looks around too:
`machine` and `installation` gather facts, `machine_checks` and `installation_checks` judge them. `known_messages` is the one list
of complaints and cures, and `check` what all of these say their findings with.
"""
