# A script: writes OUT, a source that holds the bytes of FILE for configs/schema_bytes.h.

file(READ "${FILE}" digits HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
string(REGEX REPLACE "(0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUT}" "#include <string_view>\n\n\
namespace lockstep::config {\n\n\
std::string_view schema_bytes() {\n\
  static constexpr unsigned char kBytes[] = {\n${bytes}};\n\
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};\n\
}\n\n\
}  // namespace lockstep::config\n")
