// The C++ of docs/from_libtorch.md.

#include <lockstep/lockstep.h>

#include <memory>

namespace lockstep {
namespace documented {

void classifier(const Tensor& images, const Tensor& labels) {
#include "from_libtorch/1.inc"
}

}  // namespace documented
}  // namespace lockstep
