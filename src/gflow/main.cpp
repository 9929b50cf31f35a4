// SPDX-License-Identifier: Apache-2.0
#include "gflow/gflow.h"

int main(int argc, char** argv) { return gflow::cli::multicall_main(argc, argv); }
