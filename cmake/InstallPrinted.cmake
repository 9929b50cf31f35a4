# SPDX-License-Identifier: Apache-2.0
# Runs at installation: writes what the verbs `__man` and `completion SHELL` of each program print.
# Given: gflow_bin, gflow_commands, gflow_share.

function(gflow_write file)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE trouble RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed (${code}): ${trouble}")
  endif()
  message(STATUS "Installing: ${gflow_share}/${file}")
  file(WRITE ${gflow_share}/${file} "${text}")
endfunction()

foreach(command ${gflow_commands})
  gflow_write(man/man1/${command}.1 ${gflow_bin}/${command} __man)
  gflow_write(bash-completion/completions/${command} ${gflow_bin}/${command} completion bash)
  gflow_write(zsh/site-functions/_${command} ${gflow_bin}/${command} completion zsh)
  gflow_write(fish/vendor_completions.d/${command}.fish ${gflow_bin}/${command} completion fish)
endforeach()
gflow_write(man/man5/gflow.toml.5 ${gflow_bin}/gflow man gflow.toml)
foreach(page gflow-spec gflow-lab gflow-doctor gflow-man)
  gflow_write(man/man1/${page}.1 ${gflow_bin}/gflow man ${page})
endforeach()
