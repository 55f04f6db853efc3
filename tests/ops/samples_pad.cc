#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// Sizes and a padding, for one number of padded dimensions.
struct Case {
  Dims sizes;
  Dims padding;
  Dims padded;
};

}  // namespace

void add_pad_samples(SampleTable& table) {
  table["constant_pad_nd"] = {.calls = {call("columns", floats({2, 3}), Dims{1, 2}, 1.5),
                                        call("both", floats({2, 3}), Dims{1, 0, 2, 1}),
                                        call("cut off", floats({3, 4}), Dims{-1, 1, 0, -2}, 0.5),
                                        call("nothing left", floats({3, 4}), Dims{-2, -2}),
                                        call("as it is", floats({3, 4}), Dims{}),
                                        call("integers", integers({3}, 0, 9), Dims{1, 1}, 2.5),
                                        call("transposed", with_gaps(floats({4, 3})), Dims{1, 1})},
                              .large = {call("large", floats({67, 1031}), Dims{3, 2, 1, 4}, 1.5)}};
  const Case cases[3][2] = {
      {{{2, 4}, {1, 2}, {2, 7}}, {{2, 1, 3}, {-1, 2}, {2, 1, 4}}},
      {{{1, 3, 3}, {1, 2, 2, 0}, {1, 5, 6}}, {{1, 2, 2, 3}, {0, 1, 1, -1}, {1, 2, 2, 4}}},
      {{{1, 2, 2, 3}, {1, 0, 1, 1, 0, 1}, {1, 3, 4, 4}},
       {{1, 1, 2, 3, 2}, {1, 1, 0, 1, -1, 1}, {1, 1, 2, 4, 4}}}};
  const Case large[3] = {{{70, 1031}, {5, 7}, {70, 1043}},
                         {{35, 40, 51}, {3, 2, 4, 1}, {35, 45, 56}},
                         {{9, 12, 20, 30}, {1, 2, 3, 4, 5, 6}, {9, 23, 27, 33}}};
  for (const char* name : {"reflection_pad", "replication_pad"}) {
    for (int rank = 1; rank <= 3; ++rank) {
      const std::string op = name + std::to_string(rank) + "d";
      OpSamples& forward = table[op];
      OpSamples& backward = table[op + "_backward"];
      backward.constants = {"self"};  // only its shape is used
      for (const Case& one : cases[rank - 1]) {
        forward.calls.push_back(call("padded", floats(one.sizes), one.padding));
        backward.calls.push_back(
            call("padded", floats(one.padded), floats(one.sizes, 2), one.padding));
      }
      const Case& most = large[rank - 1];
      forward.large.push_back(call("large", floats(most.sizes), most.padding));
      backward.large.push_back(
          call("large", floats(most.padded), floats(most.sizes, 2), most.padding));
    }
  }
  table["pad"] = {
      .calls = {call("constant", floats({2, 3}), Dims{1, 2}),
                call("with a number", floats({2, 3}), Dims{1, 0, 0, 1}, "constant", 1.5),
                call("reflect", floats({1, 2, 4}), Dims{2, 1}, "reflect"),
                call("replicate", floats({1, 2, 3, 3}), Dims{1, 1, 2, 0}, "replicate"),
                call("circular", floats({1, 2, 3, 3}), Dims{1, 2, 0, 3}, "circular"),
                call("circular, cut", floats({2, 4}), Dims{-1, 2}, "circular")}};
}

}  // namespace lockstep
