/* A plug-in in C: an operator with rule, kernel and derivative, and functions that fail. */

#include <string.h>

#include "core/plugin/plugin_abi.h"

const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;

static const ls_host* host;

static int like_first_rule(void* data, ls_call* call) {
  ls_tensor_view self = {.size = sizeof(self)};
  (void)data;
  if (host->argument_view(call, 0, &self) != 0) return 1;
  if (self.data != NULL) return host->fail(LS_ERROR, "a rule must not see elements");
  if (self.dtype != LS_F64) return host->fail(LS_ERROR_DTYPE, "expected float64");
  const ls_output_spec spec = {
      .size = sizeof(spec), .sizes = self.sizes, .rank = self.rank, .dtype = self.dtype};
  return host->add_result(call, &spec);
}

/* out = self * factor + *data */
static int affine_kernel(void* data, ls_call* call) {
  ls_tensor_view out = {.size = sizeof(out)};
  ls_tensor_view self = {.size = sizeof(self)};
  ls_value factor;
  int64_t count = 1;
  if (host->result_view(call, 0, &out) != 0 || host->argument_view(call, 0, &self) != 0 ||
      host->argument(call, 1, &factor) != 0) {
    return 1;
  }
  for (int32_t i = 0; i < self.rank; ++i) count *= self.sizes[i];
  for (int64_t i = 0; i < count; ++i) {
    ((double*)out.data)[i] = ((const double*)self.data)[i] * factor.as.real + *(double*)data;
  }
  return 0;
}

static int affine_derivative(void* data, ls_call* call) {
  ls_value arguments[2];
  ls_tensor* gradient = NULL;
  ls_tensor* result = NULL;
  int status;
  (void)data;
  if (host->needs_gradient(call, 0) == 0) return 0;
  if (host->gradient(call, 0, &gradient) != 0) return 1;
  memset(arguments, 0, sizeof(arguments));
  arguments[0].kind = LS_VALUE_TENSOR;
  arguments[0].as.tensor = gradient;
  if (host->argument(call, 1, &arguments[1]) != 0) return 1;
  if (host->call("mul.Scalar", arguments, 2, &result, 1, NULL) != 0) return 1;
  status = host->set_gradient(call, 0, result);
  host->release(result);
  return status;
}

/* Fails as *data selects: by itself, without a reason, or after an error of the host. */
static int failing_kernel(void* data, ls_call* call) {
  switch (*(int*)data) {
    case 0:
      return host->fail(LS_ERROR_INDEX, "row 7 is out of range");
    case 1:
      return 5;
    case 2: {
      ls_value value;
      return host->argument(call, 9, &value);
    }
    case 3: {
      ls_tensor_view view = {.size = 0};
      return host->argument_view(call, 0, &view);
    }
    case 4:
      return host->call("no_such_operator", NULL, 0, NULL, 0, NULL);
    default:
      return host->set_result(call, 0, NULL);
  }
}

int ls_plugin_init(const ls_host* given, ls_plugin* plugin) {
  static double one = 1;
  static int faults[] = {0, 1, 2, 3, 4, 5};
  static const char* const schemas[] = {
      "plain::fails(Tensor self) -> Tensor",         "plain::says_nothing(Tensor self) -> Tensor",
      "plain::reads_too_far(Tensor self) -> Tensor", "plain::sets_no_size(Tensor self) -> Tensor",
      "plain::calls_unknown(Tensor self) -> Tensor", "plain::wrong_place(Tensor self) -> Tensor"};
  ls_op* op;
  host = given;
  op = host->define(plugin, "plain::affine(Tensor self, float factor=2) -> Tensor",
                    "self * factor + 1.");
  if (op == NULL || host->set_rule(op, &like_first_rule, NULL) != 0 ||
      host->set_kernel(op, LS_BACKEND_CPU, LS_STRIDES_CONTIGUOUS, "Tensor, float -> Tensor",
                       &affine_kernel, &one) != 0 ||
      host->set_derivative(op, NULL, 0, &affine_derivative, NULL) != 0) {
    return 1;
  }
  for (int i = 0; i < 6; ++i) {
    op = host->define(plugin, schemas[i], "Fails.");
    if (op == NULL || host->set_rule(op, &like_first_rule, NULL) != 0 ||
        host->set_kernel(op, LS_BACKEND_CPU, LS_STRIDES_ANY, NULL, &failing_kernel, &faults[i]) !=
            0) {
      return 1;
    }
  }
  return 0;
}
