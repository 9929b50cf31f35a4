# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. The programs people call are in bin, those they do not call in
# libexec/gflow; man pages and completions are what the programs themselves print.
# What people call: gbatch is a program of its own, which starts sooner; the others are names gflow is called by.
set(GFLOW_COMMANDS gbatch galloc gqueue ginfo gcancel gjob gstats gctl)

if(TARGET gflow AND TARGET gflowd)
  set(links "")
  set(names ${GFLOW_COMMANDS})
  list(REMOVE_ITEM names gbatch)
  foreach(command ${names})
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink gflow ${command})
  endforeach()
  add_custom_target(gflow_links ALL ${links} WORKING_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} VERBATIM)
  add_dependencies(gflow_links gflow)

  # It was a link to gflow once: what is written to that would be written to gflow.
  if(IS_SYMLINK ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gbatch)
    file(REMOVE ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gbatch)
  endif()
  install(CODE "set(gbatch \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/gbatch\")
    if(IS_SYMLINK \"\${gbatch}\")
      file(REMOVE \"\${gbatch}\")
    endif()")
  install(TARGETS gflow gbatch gflowd gflow-kube RUNTIME)
  foreach(command ${names})
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
