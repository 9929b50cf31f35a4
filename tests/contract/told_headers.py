# SPDX-License-Identifier: Apache-2.0
"""A check of schemathesis (SCHEMATHESIS_HOOKS): no answer has a header of which its description does not tell."""

import schemathesis
from described import OF_HTTP


@schemathesis.check
def no_untold_header(ctx, response, case):
    described = case.operation.responses.find_by_status_code(response.status_code)
    is_operation = response.request.method == case.operation.method.upper()  # other methods are tried, too
    if described is None or not is_operation:
        return
    told = {name.lower() for name, _ in described.headers.items()}
    untold = {name.lower() for name in response.headers} - told - OF_HTTP
    assert not untold, f"{response.status_code} has {sorted(untold)}, of which the description does not tell"
