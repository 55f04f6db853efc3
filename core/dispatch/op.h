#pragma once

#include <initializer_list>
#include <optional>
#include <source_location>
#include <string_view>

#include "core/dispatch/dispatcher.h"
#include "core/dispatch/forms.h"
#include "core/dispatch/view_forms.h"

namespace lockstep {

/// Collects what one block says about an operator and enters it into the dispatcher. Not for use
/// by hand: `LS_OP` makes one.
class OpDefinition {
 public:
  /// Throws DispatchError when the schema is malformed or its name is taken.
  OpDefinition(std::string_view schema, Site site);

  void doc(std::string_view text);
  /// Throws DispatchError when the C++ signature does not say what the schema says.
  void kind(OpKind kind, AnyFunction definition, OpAdapters adapters);
  void autocast(Autocast autocast);
  void flops(FlopFormula formula);
  void allocates_only();
  void tag(std::string_view tag);
  void derivative(Vjp vjp);
  void derivative(VjpOfMany vjp);
  void saves(std::initializer_list<std::string_view> texts);
  void differentiable_outputs(uint64_t mask);
  void not_differentiable(std::string_view reason);
  /// Defines the `name_` or `name.out` operator that shares rule and kernels with this one. Without
  /// an overload it has this one's.
  const Operator* form(OpForm form, std::optional<std::string_view> overload, OpAdapters adapters);

  /// What rule or body find at `definition_data`.
  void data(void* data);
  /// What the derivative finds at `VjpContext::data`.
  void derivative_data(void* data);
  void batching(BatchingRule rule, void* data);

  const Operator* op() const { return op_; }
  /// Undoes the definition, with its other forms; for definitions that do not last as long as the
  /// process.
  Registration registration() const { return Registration(op_); }

 private:
  Operator* op_;
};

/// The typed side of a block: everything that depends on the C++ signature R(A...).
template <class Signature>
class OpBuilder;

template <class Signature>
class Op;

template <class R, class... A>
class OpBuilder<R(A...)> {
 public:
  explicit OpBuilder(std::string_view schema,
                     std::source_location where = std::source_location::current())
      : definition_(schema, {where.file_name(), where.line()}) {}

  OpBuilder& doc(std::string_view text) {
    definition_.doc(text);
    return *this;
  }
  /// A shape rule; kernels write into results that the wrapper provides.
  OpBuilder& structured(Outputs (*rule)(A...)) {
    OpAdapters adapters = SignatureAdapters<R(A...)>::make();
    adapters.structured =
        reinterpret_cast<AnyFunction>(&structured::Forms<R(A...)>::Functional::call);
    adapters.kernel_type = &typeid(typename StructuredKernel<R(A...)>::type);
    definition_.kind(OpKind::kStructured, reinterpret_cast<AnyFunction>(rule), adapters);
    return *this;
  }
  /// A geometry function; the result shares the first argument's storage.
  OpBuilder& view(typename ViewAdapters<R(A...)>::Geometry geometry) {
    OpAdapters adapters = SignatureAdapters<R(A...)>::make();
    adapters.view = reinterpret_cast<AnyFunction>(&ViewAdapters<R(A...)>::call);
    definition_.kind(OpKind::kView, reinterpret_cast<AnyFunction>(geometry), adapters);
    return *this;
  }
  /// A body of public operators.
  OpBuilder& composite(R (*body)(A...)) {
    definition_.kind(OpKind::kComposite, reinterpret_cast<AnyFunction>(body),
                     SignatureAdapters<R(A...)>::make());
    return *this;
  }
  /// Kernels allocate, because the result's size depends on the values.
  OpBuilder& dynamic() {
    definition_.kind(OpKind::kDynamic, nullptr, SignatureAdapters<R(A...)>::make());
    return *this;
  }
  /// Kernels return a C++ value.
  OpBuilder& host_value() {
    definition_.kind(OpKind::kHostValue, nullptr, SignatureAdapters<R(A...)>::make());
    return *this;
  }
  /// Adds the in-place form `name_`, of this operator's overload unless ATen calls it otherwise.
  OpBuilder& in_place(std::optional<std::string_view> overload = std::nullopt) {
    using Form = structured::InPlace<R(A...)>;
    OpAdapters adapters = SignatureAdapters<typename Form::Signature>::make();
    adapters.structured = reinterpret_cast<AnyFunction>(&Form::call);
    in_place_ = definition_.form(OpForm::kInPlace, overload, adapters);
    return *this;
  }
  /// Adds the in-place form `name_` of a view operator: the tensor itself gets the geometry.
  OpBuilder& in_place_view(std::optional<std::string_view> overload = std::nullopt) {
    OpAdapters adapters =
        SignatureAdapters<typename structured::InPlace<R(A...)>::Signature>::make();
    adapters.view = reinterpret_cast<AnyFunction>(&ViewAdapters<R(A...)>::call_in_place);
    in_place_ = definition_.form(OpForm::kInPlace, overload, adapters);
    return *this;
  }
  /// Adds the out= form. ATen calls its overload "out" where the functional one has none or is
  /// "Tensor"; otherwise give the name.
  OpBuilder& out(std::string_view overload = "out") {
    using Form = structured::OutForm<R(A...)>;
    OpAdapters adapters = SignatureAdapters<typename Form::Signature>::make();
    adapters.structured = reinterpret_cast<AnyFunction>(&Form::call);
    out_ = definition_.form(OpForm::kOut, overload, adapters);
    return *this;
  }
  OpBuilder& autocast(Autocast autocast) {
    definition_.autocast(autocast);
    return *this;
  }
  /// Results are left as they were allocated: no backend needs a kernel.
  OpBuilder& allocates_only() {
    definition_.allocates_only();
    return *this;
  }
  /// For operators of which most time is additions and multiplications.
  OpBuilder& flops(FlopFormula formula) {
    definition_.flops(formula);
    return *this;
  }
  /// How vmap treats a batch in one call; without it, it calls the operator once per sample.
  OpBuilder& batching(BatchingRule rule) {
    definition_.batching(rule, nullptr);
    return *this;
  }
  OpBuilder& tag(std::string_view tag) {
    definition_.tag(tag);
    return *this;
  }
  /// Tensors kept for backward: argument names or "output<i>", each optionally "for" the
  /// arguments whose gradients read it: "mat2 for self".
  OpBuilder& saves(std::initializer_list<std::string_view> names) {
    definition_.saves(names);
    return *this;
  }
  /// For an operator of which one result is differentiable (the first).
  OpBuilder& derivative(Vjp vjp) {
    definition_.derivative(vjp);
    return *this;
  }
  /// For an operator of which several are.
  OpBuilder& derivative_of_many(VjpOfMany vjp) {
    definition_.derivative(vjp);
    return *this;
  }
  /// Bit i: result i carries a gradient. Default: all of floating dtype.
  OpBuilder& differentiable_outputs(uint64_t mask) {
    definition_.differentiable_outputs(mask);
    return *this;
  }
  /// Says why there is no derivative.
  OpBuilder& not_differentiable(std::string_view reason) {
    definition_.not_differentiable(reason);
    return *this;
  }

 private:
  friend class Op<R(A...)>;

  OpDefinition definition_;
  const Operator* in_place_ = nullptr;
  const Operator* out_ = nullptr;
};

/// A block's handle: call it like the function it names; `in_place` and `out` call the other forms.
template <class R, class... A>
class Op<R(A...)> : public TypedOp<R(A...)> {
 public:
  Op(const OpBuilder<R(A...)>& builder) : TypedOp<R(A...)>(builder.definition_.op()) {
    if constexpr (kHasInPlace) in_place = InPlaceOp(builder.in_place_);
    if constexpr (kHasOut) out = OutOp(builder.out_);
  }

 private:
  template <class Signature>
  struct FormTypes {
    using InPlaceOp = std::nullptr_t;
    using OutOp = std::nullptr_t;
  };
  template <class... Rest>
  struct FormTypes<Tensor(const Tensor&, Rest...)> {
    using InPlaceOp = TypedOp<const Tensor&(const Tensor&, Rest...)>;
    using OutOp = TypedOp<const Tensor&(const Tensor&, Rest..., const Tensor&)>;
  };
  using InPlaceOp = typename FormTypes<R(A...)>::InPlaceOp;
  using OutOp = typename FormTypes<R(A...)>::OutOp;
  static constexpr bool kHasInPlace = !std::is_same_v<InPlaceOp, std::nullptr_t>;
  static constexpr bool kHasOut = !std::is_same_v<OutOp, std::nullptr_t>;

 public:
  InPlaceOp in_place{};
  OutOp out{};
};

}  // namespace lockstep

/// Begins an operator's block: `LS_OP(mm, Tensor(const Tensor&, const Tensor&), "mm(...) ->
/// Tensor")` followed by `.doc(...)`, its kind and the rest. Afterwards `op_mm(a, b)` calls it.
#define LS_OP(identifier, signature, schema) \
  static const ::lockstep::Op<signature> op_##identifier = ::lockstep::OpBuilder<signature>(schema)
