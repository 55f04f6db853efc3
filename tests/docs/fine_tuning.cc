// The C++ of docs/fine_tuning.md.

#include <lockstep/lockstep.h>

namespace documented {

void adapters() {
  using namespace lockstep;
#include "fine_tuning/1.inc"
}

}  // namespace documented
