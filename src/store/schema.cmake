# SPDX-License-Identifier: Apache-2.0
# Turns schema/NNNN_name.sql into generated/store/schema_files.inc, which schema.cpp includes: one
# {number, text} per file, in order.
file(GLOB gflow_schema_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/schema/[0-9][0-9][0-9][0-9]_*.sql)
list(SORT gflow_schema_files)
set(gflow_schema_text "")
foreach(file IN LISTS gflow_schema_files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "^0*([0-9]+)_.*" "\\1" number ${name})
  file(READ ${file} sql)
  string(APPEND gflow_schema_text "{${number}, R\"sql(${sql})sql\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/store/schema_files.inc
     CONTENT "${gflow_schema_text}" @ONLY)
