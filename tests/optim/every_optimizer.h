#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "optim/adadelta.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/lion.h"
#include "optim/nadam.h"
#include "optim/radam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace lockstep::optim {

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const ParameterList& parameters)>;

template <class T>
struct OptionsOf;
template <>
struct OptionsOf<SGD> : std::type_identity<SGDOptions> {};
template <>
struct OptionsOf<Adam> : std::type_identity<AdamOptions> {};
template <>
struct OptionsOf<AdamW> : std::type_identity<AdamWOptions> {};
template <>
struct OptionsOf<RMSprop> : std::type_identity<RMSpropOptions> {};
template <>
struct OptionsOf<Adagrad> : std::type_identity<AdagradOptions> {};
template <>
struct OptionsOf<Adadelta> : std::type_identity<AdadeltaOptions> {};
template <>
struct OptionsOf<NAdam> : std::type_identity<NAdamOptions> {};
template <>
struct OptionsOf<RAdam> : std::type_identity<RAdamOptions> {};
template <>
struct OptionsOf<Lion> : std::type_identity<LionOptions> {};
template <>
struct OptionsOf<Adafactor> : std::type_identity<AdafactorOptions> {};

/// Makes an optimizer of this kind with these options.
template <class T>
MakeOptimizer maker(const typename OptionsOf<T>::type& options) {
  return [options](const ParameterList& parameters) {
    return std::make_unique<T>(parameters, options);
  };
}

/// Every kind that updates parameters one by one, with the options that keep the most state.
inline std::vector<MakeOptimizer> every_optimizer() {
  return {maker<SGD>({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}),
          maker<SGD>({.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5}),
          maker<Adam>({.learning_rate = 0.1, .weight_decay = 0.1}),
          maker<AdamW>({.learning_rate = 0.1, .amsgrad = true}),
          maker<RMSprop>({.momentum = 0.5, .centered = true}),
          maker<Adagrad>({.learning_rate = 0.1, .initial_accumulator_value = 0.1}),
          maker<Adadelta>({}),
          maker<NAdam>({}),
          maker<RAdam>({.learning_rate = 0.1, .beta2 = 0.9}),
          maker<Lion>({.learning_rate = 0.1, .weight_decay = 0.1}),
          maker<Adafactor>({.learning_rate = 0.1, .weight_decay = 0.1})};
}

}  // namespace lockstep::optim
