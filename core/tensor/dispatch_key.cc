#include "core/tensor/dispatch_key.h"

#include "core/base/check.h"

namespace lockstep {

std::string_view name(Key key) {
  static constexpr std::string_view kNames[kKeyCount] = {
      "CPU",      "Host",     "CUDA",          "Meta",         "Private1",
      "Private2", "Private3", "Private4",      "DispatchMode", "Autograd",
      "Autocast", "Vmap",     "Functionalize", "FunctionMode", "Observer"};
  return kNames[static_cast<int>(key)];
}

std::string to_string(KeySet keys) {
  std::string text = "{";
  for (int i = kKeyCount - 1; i >= 0; --i) {
    const Key key = static_cast<Key>(i);
    if (!keys.has(key)) continue;
    if (text.size() > 1) text += ", ";
    text += name(key);
  }
  return text + "}";
}

}  // namespace lockstep
