// The C++ of docs/plugins.md.

#include <algorithm>

#include "compile/native/load_inline.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/factory.h"
#include "core/plugin/plugin_tensors.h"

namespace lockstep {
namespace documented {

void load_a_text() {
#include "plugins/1.inc"
}

void load_kernels_of_a_text() {
#include "plugins/2.inc"
}

}  // namespace documented

namespace plugin::documented {

#include "plugins/3.inc"

}  // namespace plugin::documented
}  // namespace lockstep
