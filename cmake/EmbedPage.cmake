# A script: writes OUT, a source with the functions of train/page/assets.h. STYLE and PROGRAM are our
# files; PLOT_PROGRAM, PLOT_STYLE and PLOT_LICENSE are those of the plotting library, or empty.

function(lockstep_bytes name file)
  set(bytes "")
  if(file)
    file(READ "${file}" digits HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
    string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],))" "\\1\n" bytes "${bytes}")
  endif()
  # The last byte is no part of the text, so that no array is empty.
  string(APPEND text "std::string_view ${name}() {\n\
  static constexpr unsigned char kBytes[] = {\n${bytes}0};\n\
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes) - 1};\n}\n\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

set(text "#include \"train/page/assets.h\"\n\nnamespace lockstep::train::page_assets {\n\n")
lockstep_bytes(style "${STYLE}")
lockstep_bytes(program "${PROGRAM}")
lockstep_bytes(plot_program "${PLOT_PROGRAM}")
lockstep_bytes(plot_style "${PLOT_STYLE}")
lockstep_bytes(plot_license "${PLOT_LICENSE}")
file(WRITE "${OUT}" "${text}}  // namespace lockstep::train::page_assets\n")
