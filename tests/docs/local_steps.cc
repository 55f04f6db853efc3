// The C++ of docs/local_steps.md.

#include <lockstep/lockstep.h>

#include <vector>

namespace lockstep {
namespace documented {

void local_steps(const std::vector<dist::NamedTensor>& parameters, dist::ProcessGroup& group,
                 int64_t steps) {
#include "local_steps/1.inc"
}

}  // namespace documented
}  // namespace lockstep
