# SPDX-License-Identifier: Apache-2.0
# Runs at installation: writes what `gflow man COMMAND` and `COMMAND completion SHELL` print.
# Given: gflow_program, gflow_commands, gflow_share.
get_filename_component(gflow_bin ${gflow_program} DIRECTORY)

function(gflow_write file)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE trouble RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed (${code}): ${trouble}")
  endif()
  message(STATUS "Installing: ${gflow_share}/${file}")
  file(WRITE ${gflow_share}/${file} "${text}")
endfunction()

foreach(command ${gflow_commands})
  gflow_write(man/man1/${command}.1 ${gflow_program} man ${command})
  gflow_write(bash-completion/completions/${command} ${gflow_bin}/${command} completion bash)
  gflow_write(zsh/site-functions/_${command} ${gflow_bin}/${command} completion zsh)
  gflow_write(fish/vendor_completions.d/${command}.fish ${gflow_bin}/${command} completion fish)
endforeach()
