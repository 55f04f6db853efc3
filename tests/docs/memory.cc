// The C++ of docs/memory.md.

#include <lockstep/lockstep.h>

namespace lockstep {
namespace documented {

void side_streams(const Tensor& x, const Stream& side) {
#include "memory/1.inc"
}

}  // namespace documented
}  // namespace lockstep
