#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

void add_lines_and_volumes(SampleTable& table) {
  const Tensor lines = floats({2, 3, 4});
  const Tensor volumes = floats({1, 2, 3, 2, 4});
  table["upsample_nearest1d"] = {.calls = {call("larger", lines, Dims{6}),
                                           call("smaller", lines, Dims{3}),
                                           call("scaled", lines, Dims{6}, 1.7)}};
  table["upsample_nearest1d.vec"] = {.calls = {call("sizes", lines, Dims{6}, std::nullopt)}};
  table["upsample_nearest3d"] = {.calls = {call("larger", volumes, Dims{5, 3, 6}),
                                           call("same depth", volumes, Dims{3, 2, 2}),
                                           call("scaled", volumes, Dims{4, 3, 6}, 1.4, 1.6, 1.7)}};
  table["upsample_nearest3d.vec"] = {
      .calls = {call("sizes", volumes, Dims{4, 3, 6}, std::nullopt)}};
  table["upsample_linear1d.vec"] = {.calls = {call("sizes", lines, Dims{6}, false, std::nullopt)}};
  table["upsample_trilinear3d.vec"] = {
      .calls = {call("sizes", volumes, Dims{4, 3, 6}, true, std::nullopt)}};
  for (const bool align_corners : {false, true}) {
    const std::string what = align_corners ? "aligned" : "edges";
    table["upsample_linear1d"].calls.push_back(call(what, lines, Dims{6}, align_corners));
    table["upsample_trilinear3d"].calls.push_back(
        call(what, volumes, Dims{5, 3, 6}, align_corners));
  }
  table["upsample_linear1d"].calls.push_back(call("scaled", lines, Dims{3}, false, 0.7));
  table["upsample_trilinear3d"].calls.push_back(
      call("scaled", volumes, Dims{2, 3, 3}, false, 0.7, 1.5, 0.8));
}

}  // namespace

void add_image_samples(SampleTable& table) {
  const Dims one{1, 1}, none{0, 0}, two{2, 2};
  table["im2col"] = {
      .calls = {call("apart", floats({2, 2, 4, 4}), two, one, none, two),
                call("overlapping, padded", floats({1, 3, 3}), Dims{2, 3}, one, one, one),
                call("dilated", floats({1, 1, 5, 4}), two, Dims{2, 1}, Dims{0, 1}, Dims{1, 2}),
                call("empty batch", floats({0, 1, 3, 3}), two, one, none, one)},
      .large = {call("large", floats({3, 7, 40, 41}), Dims{3, 3}, one, one, one)}};
  table["col2im"] = {
      .calls = {call("apart", floats({1, 8, 4}), Dims{4, 4}, two, one, none, two),
                call("overlapping, padded", floats({6, 12}), Dims{3, 3}, Dims{2, 3}, one, one, one),
                call("dilated", floats({1, 4, 9}), Dims{5, 4}, two, Dims{2, 1}, Dims{0, 1},
                     Dims{1, 2})},
      .large = {call("large", floats({3, 63, 1640}), Dims{40, 41}, Dims{3, 3}, one, one, one)}};

  OpSamples& sampler = table["grid_sampler_2d"];
  OpSamples& backward = table["grid_sampler_2d_backward"];
  for (int mode = 0; mode < 3; ++mode) {
    for (int padding = 0; padding < 3; ++padding) {
      for (const bool align : {false, true}) {
        const std::string what = "mode " + std::to_string(mode) + ", padding " +
                                 std::to_string(padding) + (align ? ", aligned" : "");
        const Tensor images = floats({1, 2, 3, 4});
        const Tensor grid = map_floats(floats({1, 2, 3, 2}, 3), [](double x) { return 0.7 * x; });
        sampler.calls.push_back(call(what, images, grid, mode, padding, align));
        backward.calls.push_back(call(what, floats({1, 2, 2, 3}, 5), images, grid, mode, padding,
                                      align, BoolList{true, true}));
      }
    }
  }
  backward.calls.push_back(call("images only", floats({1, 2, 2, 3}, 5), floats({1, 2, 3, 4}),
                                floats({1, 2, 3, 2}, 3), 0, 0, false, BoolList{true, false}));
  const Tensor images = floats({2, 5, 30, 31}), grid = floats({2, 40, 41, 2}, 3);
  sampler.large = {call("large", images, grid, 2, 2, false)};
  backward.large = {
      call("large", floats({2, 5, 40, 41}, 5), images, grid, 0, 1, false, BoolList{true, true})};

  const Tensor pixels = floats({2, 2, 3, 4});
  const Tensor many = floats({2, 5, 40, 41});
  table["upsample_nearest2d"] = {
      .calls = {call("larger", pixels, Dims{5, 8}), call("smaller", pixels, Dims{2, 3}),
                call("scaled", pixels, Dims{7, 9}, 2.5, 2.3)},
      .large = {call("large", many, Dims{55, 63})}};
  table["upsample_nearest2d_backward"] = {
      .calls = {call("larger", floats({2, 2, 5, 8}), Dims{5, 8}, Dims{2, 2, 3, 4}),
                call("smaller", floats({2, 2, 2, 3}), Dims{2, 3}, Dims{2, 2, 3, 4})},
      .large = {call("large", many, Dims{40, 41}, Dims{2, 5, 30, 33})}};
  table["upsample_nearest2d.vec"] = {.calls = {call("sizes", pixels, Dims{5, 8}, std::nullopt)}};
  for (const std::string op : {"upsample_bilinear2d", "upsample_bicubic2d"}) {
    table[op] = {.calls = {call("larger", pixels, Dims{5, 8}, false),
                           call("larger, aligned", pixels, Dims{5, 8}, true),
                           call("smaller", pixels, Dims{2, 3}, false),
                           call("to one pixel", pixels, Dims{1, 1}, true),
                           call("scaled", pixels, Dims{7, 9}, false, 2.5, 2.3)},
                 .large = {call("large", many, Dims{55, 63}, false)}};
    table[op + "_backward"] = {
        .calls = {call("larger", floats({2, 2, 5, 8}), Dims{5, 8}, Dims{2, 2, 3, 4}, false),
                  call("smaller", floats({2, 2, 2, 3}), Dims{2, 3}, Dims{2, 2, 3, 4}, true)},
        .large = {call("large", many, Dims{40, 41}, Dims{2, 5, 30, 33}, false)}};
    table[op + ".vec"] = {.calls = {call("sizes", pixels, Dims{5, 8}, true, std::nullopt)}};
  }

  OpSamples& bags = table["_embedding_bag"];
  for (int mode = 0; mode < 3; ++mode) {
    bags.calls.push_back(call("mode " + std::to_string(mode), floats({5, 3}),
                              longs({0, 3, 3, 1, 2, 0}), longs({0, 2, 2}), false, mode));
    bags.calls.push_back(call("last offset, mode " + std::to_string(mode), floats({5, 3}),
                              longs({0, 3, 3, 1}), longs({0, 1, 4}), false, mode)
                             .with("include_last_offset", true));
    bags.calls.push_back(call("padded, mode " + std::to_string(mode), floats({5, 3}),
                              longs({0, 3, 1, 3}), longs({0, 3}), false, mode)
                             .with("padding_idx", 3)
                             .without_gradcheck("the padding row gets no gradient"));
    bags.large.push_back(call("large", floats({300, 65}), integers({2060}, 0, 300),
                              longs({0, 700, 1031, 1031, 2000}), false, mode));
  }
  bags.calls.push_back(call("weighted", floats({5, 3}), longs({0, 3, 3, 1}), longs({0, 2}))
                           .with("per_sample_weights", floats({4}, 2)));
  bags.calls.push_back(call("no bags", floats({5, 3}), longs({}), longs({})));
  table["embedding_bag"] = {
      .calls = {call("sum", floats({5, 3}), longs({0, 3, 3, 1, 2, 0}), longs({0, 2, 2})),
                call("mean", floats({5, 3}), longs({0, 3, 1}), longs({0, 1}), false, 1)}};
  table["embedding_bag.padding_idx"] = {
      .calls = {call("none", floats({5, 3}), longs({0, 3, 1}), longs({0, 1}), false, 0, false,
                     std::nullopt, false, std::nullopt)}};
  add_lines_and_volumes(table);
}

}  // namespace lockstep
