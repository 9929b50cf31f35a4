# SPDX-License-Identifier: Apache-2.0
# Libraries of C++ that a program started for each command has linked in, where the distribution has them as archives or
# headers: three quarters of what its start cost beyond a bare one was loading them and looking up their names.
# gflow_yaml, gflow_zlib, gflow_toml; fmt is taken from its headers by its own target.

# gflow_archive(NAME FILE TARGET): NAME is the archive FILE in targets with the property GFLOW_LINKED_IN, TARGET in others
# and where there is no such file.
function(gflow_archive name file target)
  find_library(GFLOW_${file} ${file})
  add_library(${name} INTERFACE)
  if(GFLOW_${file})
    set(linked_in $<BOOL:$<TARGET_PROPERTY:GFLOW_LINKED_IN>>)
    target_link_libraries(${name} INTERFACE $<${linked_in}:${GFLOW_${file}}> $<$<NOT:${linked_in}>:${target}>)
  else()
    target_link_libraries(${name} INTERFACE ${target})
  endif()
endfunction()

gflow_archive(gflow_yaml libyaml-cpp.a yaml-cpp)
gflow_archive(gflow_zlib libz.a ZLIB::ZLIB)

# Its .pc file asks for the shared library.
add_library(gflow_toml INTERFACE)
target_include_directories(gflow_toml SYSTEM INTERFACE ${tomlplusplus_INCLUDE_DIRS})
