// The C++ of docs/autograd.md.

#include <lockstep/lockstep.h>

namespace lockstep {
namespace documented {

void functions(const Tensor& x) {
#include "autograd/1.inc"
}

}  // namespace documented
}  // namespace lockstep
