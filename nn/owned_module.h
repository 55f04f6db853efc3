#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "nn/module.h"

namespace lockstep::nn {

/// A module that a container takes over: a temporary or a moved one, not one that has a place of
/// its own.
template <class M>
concept MovableModule =
    std::derived_from<M, Module> && std::move_constructible<M> && !std::is_const_v<M> &&
    !std::is_reference_v<M>;

/// `Parts` are not one `Self` alone, which is moved and not taken over as a part. It stands before
/// other constraints, which may ask whether Self can be moved, and so whether this one holds.
template <class Self, class... Parts>
concept NotOnly =
    !(sizeof...(Parts) == 1 && (std::same_as<std::remove_cvref_t<Parts>, Self> && ...));

/// A module with `Tensor forward(const Tensor&)`.
template <class M>
concept TensorModule = std::derived_from<M, Module> && requires(M& module, const Tensor& x) {
  { module.forward(x) } -> std::same_as<Tensor>;
};

/// Owns a module of any class that maps a tensor to a tensor, and calls it. Made of the module
/// itself, `Layer(Linear(3, 8))`, or of a unique_ptr to it.
class Layer {
 public:
  template <class M>
  requires MovableModule<M> && TensorModule<M> Layer(M&& module)
      : Layer(std::make_unique<M>(std::move(module))) {}
  template <TensorModule M>
  Layer(std::unique_ptr<M> module) : module_(std::move(module)), forward_(&call<M>) {}

  Tensor forward(const Tensor& x) const { return forward_(*module_, x); }
  Module& module() const { return *module_; }

 private:
  template <class M>
  static Tensor call(Module& module, const Tensor& x) {
    return static_cast<M&>(module).forward(x);
  }

  std::unique_ptr<Module> module_;
  Tensor (*forward_)(Module&, const Tensor&);
};

namespace detail {
/// Throws Error: `module` is not of the class that was asked for.
[[noreturn]] void throw_other_class(const Module& module);
}  // namespace detail

/// `module` as the class that it is. Throws Error if it is another.
template <std::derived_from<Module> M>
M& as(Module& module) {
  M* const found = dynamic_cast<M*>(&module);
  if (found == nullptr) detail::throw_other_class(module);
  return *found;
}

}  // namespace lockstep::nn
