// The C++ of docs/adding_a_backend.md.

#include <lockstep/lockstep.h>

#include "core/dispatch/cpu_fallback.h"

namespace lockstep {
namespace documented {

Tensor negative_f32(const Tensor& self);

#include "adding_a_backend/1.inc"

}  // namespace documented
}  // namespace lockstep
