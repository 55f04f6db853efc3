# Sets `result` to who makes the packages, for Debian's field Maintainer: "NAME <ADDRESS>". These are
# DEBFULLNAME and DEBEMAIL of the environment, which Debian's tools read, else what git has for commits to
# the folder `source`. Where either is unknown it is an address that RFC 2606 reserves, which gets no mail.
function(lockstep_packager source result)
  set(name "$ENV{DEBFULLNAME}")
  set(address "$ENV{DEBEMAIL}")
  if(address MATCHES "^(.*[^ ]) *<(.*)>$")  # DEBEMAIL may have both
    if(name STREQUAL "")
      set(name "${CMAKE_MATCH_1}")
    endif()
    set(address "${CMAKE_MATCH_2}")
  endif()
  foreach(field IN ITEMS name address)
    set(key "user.${field}")
    string(REPLACE address email key "${key}")
    if("${${field}}" STREQUAL "")
      execute_process(COMMAND git -C "${source}" config "${key}" OUTPUT_VARIABLE ${field}
                      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endforeach()
  if(NOT name OR NOT address)
    set(name "Lockstep developers")
    set(address lockstep@lists.lockstep.invalid)
  endif()
  set(${result} "${name} <${address}>" PARENT_SCOPE)
endfunction()
