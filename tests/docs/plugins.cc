// The C++ of docs/plugins.md.

#include <algorithm>

#include "core/plugin/plugin_tensors.h"

namespace lockstep::plugin {
namespace documented {

#include "plugins/1.inc"

}  // namespace documented
}  // namespace lockstep::plugin
