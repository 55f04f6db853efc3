#include "nn/class_name.h"

#include <cxxabi.h>

#include <cstdlib>

#include "nn/module.h"

namespace lockstep::nn {

std::string class_name(const Module& module) {
  const char* const mangled = typeid(module).name();
  int status = 0;
  char* const readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : mangled;
  std::free(readable);
  // Template arguments may have namespaces of their own.
  const size_t colons = name.rfind("::", name.find('<'));
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

}  // namespace lockstep::nn
