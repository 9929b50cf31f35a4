# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. The programs people call are in bin, those they do not call in
# libexec/gflow; man pages and completions are what the programs themselves print.
# What people call: names gflow is called by, and commands that are programs of their own, which start sooner.
set(GFLOW_COMMANDS galloc gqueue ginfo gcancel gjob gstats gtop gctl)
set(GFLOW_OWN_PROGRAMS gbatch)

if(TARGET gflow AND TARGET gflowd)
  set(links "")
  foreach(command ${GFLOW_COMMANDS})
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink gflow ${command})
  endforeach()
  add_custom_target(gflow_links ALL ${links} WORKING_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} VERBATIM)
  add_dependencies(gflow_links gflow)

  # They were links to gflow once: what is written to such a one would be written to gflow.
  foreach(program ${GFLOW_OWN_PROGRAMS})
    if(IS_SYMLINK ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program})
      file(REMOVE ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program})
    endif()
    install(CODE "set(program \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${program}\")
      if(IS_SYMLINK \"\${program}\")
        file(REMOVE \"\${program}\")
      endif()")
  endforeach()
  add_dependencies(programs ${GFLOW_OWN_PROGRAMS})
  install(TARGETS gflow ${GFLOW_OWN_PROGRAMS} gflowd gflow-kube RUNTIME)
  if(TARGET gflow-device-plugin)
    install(TARGETS gflow-device-plugin gflow-dra-driver RUNTIME)
    list(APPEND GFLOW_OWN_PROGRAMS gflow-device-plugin gflow-dra-driver)
  endif()
  foreach(command ${GFLOW_COMMANDS})
    install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${command} TYPE BIN)
  endforeach()
  set(printed_pages
    "set(gflow_bin \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")"
    "set(gflow_commands gflow gflowd gflow-kube ${GFLOW_COMMANDS} ${GFLOW_OWN_PROGRAMS})"
    "set(gflow_share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")"
    "include(\"${CMAKE_CURRENT_LIST_DIR}/InstallPrinted.cmake\")")
  list(JOIN printed_pages "\n" printed_pages)
  install(CODE "${printed_pages}")
endif()
foreach(program gflow-shim gflow-gpumon gflow-mig gflow-park gflow-tls gflow-slurm)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gflow)
  endif()
endforeach()
if(TARGET gflow-share)
  install(TARGETS gflow-share LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gflow)
endif()
