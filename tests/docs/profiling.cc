// The C++ of docs/profiling.md.

#include <lockstep/lockstep.h>

#include <iostream>

namespace lockstep {
namespace documented {

void profile_steps(int64_t steps) {
#include "profiling/1.inc"
}

}  // namespace documented
}  // namespace lockstep
