/* A plug-in compiled for version 1 of the ABI: fewer host functions, a shorter view. */

#include "tests/plugins/plugin_abi_1.h"

const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;

static const ls_host* host;

/* A view of version 1, followed by memory that a host must not write. */
typedef struct guarded_view {
  ls_tensor_view view;
  uint64_t guard;
} guarded_view;

static const uint64_t kGuard = 0x5a5a5a5a5a5a5a5aull;

static int negative_rule(void* data, ls_call* call) {
  guarded_view self = {{.size = sizeof(ls_tensor_view)}, kGuard};
  (void)data;
  if (host->argument_view(call, 0, &self.view) != 0) return 1;
  if (self.guard != kGuard) return host->fail(LS_ERROR, "the host wrote behind an old view");
  const ls_output_spec spec = {.size = sizeof(spec),
                               .sizes = self.view.sizes,
                               .rank = self.view.rank,
                               .dtype = self.view.dtype};
  return host->set_compute_dtype(call, LS_F32) != 0 || host->add_result(call, &spec) != 0;
}

static int negative_kernel(void* data, ls_call* call) {
  guarded_view out = {{.size = sizeof(ls_tensor_view)}, kGuard};
  guarded_view self = {{.size = sizeof(ls_tensor_view)}, kGuard};
  int64_t count = 1;
  (void)data;
  if (host->result_view(call, 0, &out.view) != 0) return 1;
  if (host->argument_view(call, 0, &self.view) != 0) return 1;
  if (out.guard != kGuard || self.guard != kGuard) {
    return host->fail(LS_ERROR, "the host wrote behind an old view");
  }
  for (int32_t i = 0; i < self.view.rank; ++i) count *= self.view.sizes[i];
  for (int64_t i = 0; i < count; ++i) {
    ((float*)out.view.data)[i] = -((const float*)self.view.data)[i];
  }
  return 0;
}

int ls_plugin_init(const ls_host* given, ls_plugin* plugin) {
  ls_op* op;
  host = given;
  if (host->size <= sizeof(ls_host) || host->abi_version <= LS_PLUGIN_ABI_VERSION) {
    return host->fail(LS_ERROR, "this host is not newer than the plug-in");
  }
  op = host->define(plugin, "older::negative(Tensor self) -> Tensor", "-self.");
  if (op == NULL) return 1;
  return host->set_rule(op, &negative_rule, NULL) != 0 ||
         host->set_kernel(op, LS_BACKEND_CPU, LS_STRIDES_CONTIGUOUS, NULL, &negative_kernel,
                          NULL) != 0;
}
