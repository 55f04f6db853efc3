#pragma once

#include <dnnl.hpp>

/// What the two pages on oneDNN share: its engine, and descriptions of operations in the one form
/// that both of its major versions are given here.
namespace lockstep::cpu::onednn {

/// The processor. Never destroyed: threads may compute for as long as the process lives.
inline const dnnl::engine& engine() {
  static const auto* const kEngine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *kEngine;
}

/// Memory of ours at `data`, which oneDNN only writes where it is an operation's result.
inline dnnl::memory memory_at(const dnnl::memory::desc& description, const void* data) {
  return {description, engine(), const_cast<void*>(data)};
}

/// Attributes of operations whose scratch memory is passed at each call (DNNL_ARG_SCRATCHPAD).
inline dnnl::primitive_attr with_our_memory() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// The Operation (dnnl::matmul, ...) that `arguments` describe, with_our_memory. oneDNN 3 takes the
/// arguments in the primitive_desc; oneDNN 2 wants a `desc` of them. Throws dnnl::error.
template <class Operation, class... Arguments>
typename Operation::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., with_our_memory()};
#else
  return {typename Operation::desc(arguments...), with_our_memory(), engine()};
#endif
}

/// Describes an operation of backward likewise; oneDNN chooses it by the one of forward.
template <class Operation, class Forward, class... Arguments>
typename Operation::primitive_desc describe_backward(const Forward& forward,
                                                     const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., forward, with_our_memory()};
#else
  return {typename Operation::desc(arguments...), with_our_memory(), engine(), forward};
#endif
}

}  // namespace lockstep::cpu::onednn
