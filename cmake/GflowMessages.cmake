# SPDX-License-Identifier: Apache-2.0
# Catalogues of messages: po/LANGUAGE.po becomes share/locale/LANGUAGE/LC_MESSAGES/gflow.mo beside bin/, in the
# build as where it is installed. Without msgfmt programs speak English only.
find_program(GFLOW_MSGFMT msgfmt)
if(NOT GFLOW_MSGFMT)
  if("$ENV{CI}" STREQUAL "true")
    message(FATAL_ERROR "msgfmt is missing (package gettext): no catalogue of messages can be built")
  endif()
  message(NOTICE "msgfmt is missing (package gettext): messages will be in English only")
  return()
endif()

file(GLOB catalogues CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/po/*.po)
set(built "")
foreach(catalogue ${catalogues})
  cmake_path(GET catalogue STEM language)
  set(folder share/locale/${language}/LC_MESSAGES)
  set(file ${CMAKE_BINARY_DIR}/${folder}/gflow.mo)
  add_custom_command(OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/${folder}
    COMMAND ${GFLOW_MSGFMT} --check-header --check-domain -o ${file} ${catalogue}
    DEPENDS ${catalogue} VERBATIM)
  list(APPEND built ${file})
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LOCALEDIR}/${language}/LC_MESSAGES)
endforeach()
add_custom_target(messages ALL DEPENDS ${built})
