#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings.h"

namespace lockstep::python {
namespace {

/// A Python object that a node of the graph keeps, and that any thread may let go of.
class HeldObject {
 public:
  explicit HeldObject(nb::object object) : object_(new nb::object(std::move(object)), &release) {}
  const nb::object& operator*() const { return *object_; }

 private:
  static void release(nb::object* object) {
    // The interpreter is gone, and its objects with it.
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire held;
    delete object;
  }

  std::shared_ptr<nb::object> object_;
};

nb::list list_of(TensorList tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(object_from(tensor));
  return list;
}

/// Undefined for None.
std::vector<Tensor> tensors_of(nb::handle sequence) {
  std::vector<Tensor> tensors;
  for (const nb::handle each : sequence) {
    tensors.push_back(each.is_none() ? Tensor() : require_tensor("Function", each));
  }
  return tensors;
}

/// The callables that lockstep/function.py makes of a Function's methods: `forward` takes the
/// tensors and returns lists of results, tensors to save, and results and arguments that are
/// marked; `backward` takes the saved tensors and the gradients.
struct PythonFunction : Function<PythonFunction> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<Tensor>& arguments,
                                     const nb::handle& forward, const HeldObject& backward) {
    const nb::tuple made = nb::cast<nb::tuple>(forward(list_of(arguments)));
    ctx.save_for_backward(tensors_of(made[1]));
    ctx.mark_non_differentiable(tensors_of(made[2]));
    ctx.mark_dirty(tensors_of(made[3]));
    ctx.set_data(backward);
    return tensors_of(made[0]);
  }

  static Gradients backward(FunctionContext& ctx, TensorList grads) {
    // Errors of saved tensors are raised before Python is entered.
    const std::vector<Tensor>& saved = ctx.saved_tensors();
    const nb::gil_scoped_acquire held;
    const nb::object found = (*ctx.data<HeldObject>())(list_of(saved), list_of(grads));
    Gradients gradients;
    for (Tensor& each : tensors_of(found)) gradients.push_back(std::move(each));
    return gradients;
  }
};

/// One tensor or several.
std::vector<Tensor> one_or_more(const char* function, nb::handle object) {
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object)) {
    return {require_tensor(function, object)};
  }
  std::vector<Tensor> tensors;
  for (const nb::handle each : object) {
    tensors.push_back(each.is_none() ? Tensor() : require_tensor(function, each));
  }
  return tensors;
}

std::vector<Tensor> weights_of(const char* function, nb::handle object) {
  return object.is_none() ? std::vector<Tensor>() : one_or_more(function, object);
}

void bind_gradients(nb::module_& module) {
  module.def(
      "grad",
      [](nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, bool retain_graph,
         bool create_graph, bool allow_unused) {
        const std::vector<Tensor> of = one_or_more("grad", outputs);
        const std::vector<Tensor> by = one_or_more("grad", inputs);
        const std::vector<Tensor> weights = weights_of("grad", grad_outputs);
        std::vector<Tensor> found;
        {
          const nb::gil_scoped_release released;
          found = grad(of, by, weights,
                       {.retain_graph = retain_graph,
                        .create_graph = create_graph,
                        .allow_unused = allow_unused});
        }
        return nb::tuple(list_of(found));
      },
      nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = nb::none(),
      nb::arg("retain_graph") = false, nb::arg("create_graph") = false,
      nb::arg("allow_unused") = false,
      nb::sig("def grad(outputs: object, inputs: object, grad_outputs: object | None = None, "
              "retain_graph: bool = False, create_graph: bool = False, allow_unused: bool = False) "
              "-> tuple[Tensor | None, ...]"),
      "The gradients of `outputs` with respect to `inputs`, each a tensor or a list. No `grad` "
      "changes.");
  module.def(
      "backward",
      [](nb::handle tensors, nb::handle gradients, bool retain_graph) {
        const std::vector<Tensor> roots = one_or_more("backward", tensors);
        const std::vector<Tensor> weights = weights_of("backward", gradients);
        const nb::gil_scoped_release released;
        backward(roots, weights, {.retain_graph = retain_graph});
      },
      nb::arg("tensors"), nb::arg("gradients") = nb::none(), nb::arg("retain_graph") = false,
      nb::sig("def backward(tensors: object, gradients: object | None = None, retain_graph: bool = "
              "False) -> None"),
      "Adds the derivatives of all the tensors, weighted by `gradients`, to `grad` of the leaves.");
  module.def(
      "is_grad_enabled", [] { return is_grad_enabled(); },
      "Whether operators of this thread are recorded.");
}

}  // namespace

void bind_function(nb::module_& module) {
  bind_gradients(module);
  module.def(
      "_apply_function",
      [](nb::handle tensors, nb::handle forward, nb::object backward) {
        return list_of(
            PythonFunction::apply(tensors_of(tensors), forward, HeldObject(std::move(backward))));
      },
      nb::arg("tensors"), nb::arg("forward"), nb::arg("backward"),
      nb::sig("def _apply_function(tensors: list[Tensor], forward: typing.Any, backward: "
              "typing.Any) -> list[Tensor]"));
}

}  // namespace lockstep::python
