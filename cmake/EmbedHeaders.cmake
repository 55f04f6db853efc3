# A script: writes OUT, a source that defines FUNCTION of NAMESPACE, declared in DECLARED_IN, which
# returns the text of HEADER, a file below ROOT. Each header of ours stands once, in the place of the first
# #include that names it; comments of lines of their own are left out.

cmake_minimum_required(VERSION 3.25)

file(READ "${ROOT}/${HEADER}" text)
set(seen "${HEADER}")
while(text MATCHES "#include \"([^\"]+)\"\n")
  set(line "${CMAKE_MATCH_0}")
  set(name "${CMAKE_MATCH_1}")
  set(body "")
  if(NOT name IN_LIST seen)
    list(APPEND seen "${name}")
    file(READ "${ROOT}/${name}" body)
  endif()
  string(FIND "${text}" "${line}" begin)
  string(LENGTH "${line}" length)
  math(EXPR end "${begin} + ${length}")
  string(SUBSTRING "${text}" 0 ${begin} before)
  string(SUBSTRING "${text}" ${end} -1 behind)
  string(CONCAT text "${before}" "${body}" "${behind}")
endwhile()
string(REPLACE "#pragma once\n" "" text "${text}")
string(REGEX REPLACE "\n[ ]*//[^\n]*" "" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")

string(HEX "${text}" digits)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
string(REGEX REPLACE "(0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUT}" "#include \"${DECLARED_IN}\"\n\n\
namespace ${NAMESPACE} {\n\n\
std::string_view ${FUNCTION}() {\n\
  static constexpr unsigned char kBytes[] = {\n${bytes}};\n\
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};\n\
}\n\n\
}  // namespace ${NAMESPACE}\n")
