// The C++ of docs/streams.md.

#include <lockstep/lockstep.h>

#include "core/tensor/event.h"

namespace lockstep {
namespace documented {

void side_stream(Device device, const Tensor& next_batch, const Tensor& pinned) {
#include "streams/1.inc"
}

}  // namespace documented
}  // namespace lockstep
