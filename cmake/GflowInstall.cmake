# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. The programs people call are in bin, those they do not call in
# libexec/gflow; man pages and completions are what the programs themselves print.
set(GFLOW_COMMANDS gbatch galloc gqueue ginfo gcancel gjob gstats gctl)  # names gflow is called by

if(TARGET gflow AND TARGET gflowd)
  set(links "")
  foreach(command ${GFLOW_COMMANDS})
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink gflow ${command})
  endforeach()
  add_custom_target(gflow_links ALL ${links} WORKING_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} VERBATIM)
  add_dependencies(gflow_links gflow)

  install(TARGETS gflow gflowd gflow-kube RUNTIME)
  foreach(command ${GFLOW_COMMANDS})
    install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${command} TYPE BIN)
  endforeach()
  set(printed_pages
    "set(gflow_bin \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")"
    "set(gflow_commands gflow gflowd gflow-kube ${GFLOW_COMMANDS})"
    "set(gflow_share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")"
    "include(\"${CMAKE_CURRENT_LIST_DIR}/InstallPrinted.cmake\")")
  list(JOIN printed_pages "\n" printed_pages)
  install(CODE "${printed_pages}")
endif()
foreach(program gflow-shim gflow-gpumon gflow-tls)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gflow)
  endif()
endforeach()
if(TARGET gflow-share)
  install(TARGETS gflow-share LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gflow)
endif()
