#include "core/cuda/opened_library.h"

#include <fmt/format.h>

namespace lockstep::cuda {

std::string version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::cuda
