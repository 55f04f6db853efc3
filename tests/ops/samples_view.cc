#include "tests/ops/op_samples.h"

namespace lockstep {

void add_view_samples(SampleTable& table) {
  for (const char* op : {"alias", "detach"}) {
    table[op] = {.calls = {call("matrix", floats({3, 4})), call("0-d", floats({})),
                           call("empty", floats({0})),
                           call("transposed", with_gaps(floats({4, 3})))}};
  }
  table["as_strided"] = {.calls = {call("transposed", floats({3, 4}), Dims{4, 3}, Dims{1, 4}),
                                   call("overlapping", floats({6}), Dims{3, 4}, Dims{1, 1}),
                                   call("offset", floats({3, 4}), Dims{2}, Dims{4}, 1),
                                   call("0-d", floats({4}), Dims{}, Dims{}, 2)},
                         .reads_strides = true};
  table["expand"] = {.calls = {call("row", floats({1, 4}), Dims{3, 4}),
                               call("new dimensions", floats({3, 1}), Dims{2, -1, 4}),
                               call("0-d", floats({}), Dims{2, 2}),
                               call("empty", floats({1}), Dims{0})}};
  table["permute"] = {.calls = {call("three", floats({2, 3, 4}), Dims{2, 0, 1}),
                                call("negative", floats({2, 3}), Dims{-1, 0}),
                                call("0-d", floats({}), Dims{})}};
  table["select.int"] = {.calls = {call("row", floats({3, 4}), 0, 1),
                                   call("last column", floats({3, 4}), -1, -1),
                                   call("to 0-d", floats({3}), 0, 2)}};
  table["slice.Tensor"] = {.calls = {call("all", floats({3, 4})),
                                     call("rows", floats({5, 4}), 0, 1, 3),
                                     call("steps", floats({3, 7}), 1, 1, 6, 2),
                                     call("from the end", floats({5}), 0, -3, std::nullopt),
                                     call("empty", floats({5}), 0, 4, 2)}};
  table["split.Tensor"] = {.calls = {call("even", floats({4, 3}), 2),
                                     call("uneven", floats({3, 5}), 2, 1),
                                     call("one part", floats({3}), 5)}};
  table["split.sizes"] = {.calls = {call("columns", floats({3, 5}), Dims{2, 0, 3}, 1)}};
  table["split_with_sizes"] = {.calls = {call("columns", floats({3, 5}), Dims{2, 0, 3}, 1),
                                         call("rows", floats({4, 2}), Dims{1, 3})}};
  table["unfold"] = {
      .calls = {call("overlapping", floats({6}), 0, 3, 2), call("rows", floats({5, 3}), 0, 2, 1),
                call("columns", floats({2, 6}), -1, 2, 3), call("all", floats({4}), 0, 4, 9),
                call("none", floats({4}), 0, 0, 2), call("0-d", floats({}), 0, 1, 1)}};
  table["unfold_backward"] = {.calls = {call("overlapping", floats({2, 3}), Dims{6}, 0, 3, 2),
                                        call("rows", floats({4, 3, 2}), Dims{5, 3}, 0, 2, 1),
                                        call("0-d", floats({1}), Dims{}, 0, 1, 1)}};
  table["diagonal"] = {.calls = {call("main", floats({3, 4})), call("above", floats({3, 4}), 2),
                                 call("below", floats({2, 3, 2}), -1, 0, 2),
                                 call("outside", floats({2, 3}), -5)}};
  table["squeeze"] = {.calls = {call("some", floats({1, 2, 1, 3})), call("all", floats({1, 1})),
                                call("none", floats({2, 3})), call("0-d", floats({}))}};
  table["squeeze.dims"] = {.calls = {call("some", floats({1, 2, 1, 3, 1}), Dims{0, 1, -1}),
                                     call("none", floats({1, 3}), Dims{}),
                                     call("0-d", floats({}), Dims{0})}};
  table["unflatten.int"] = {.calls = {call("inferred", floats({3, 8}), 1, Dims{2, -1, 2}),
                                      call("front", floats({4, 2}), 0, Dims{2, 2})},
                            .reads_strides = true};
  table["broadcast_to"] = {
      .calls = {call("row", floats({1, 4}), Dims{3, 4}), call("0-d", floats({}), Dims{2, 2})}};
  table["expand_as"] = {.calls = {call("row", floats({1, 4}), floats({3, 4}, 2))},
                        .constants = {"other"}};
  table["view_as"] = {.calls = {call("joined", floats({3, 4}), floats({12}, 2))},
                      .reads_strides = true,
                      .constants = {"other"}};
  table["squeeze.dim"] = {.calls = {call("middle", floats({2, 1, 3}), 1),
                                    call("not 1", floats({2, 3}), 0), call("0-d", floats({}), 0)}};
  table["t"] = {.calls = {call("matrix", floats({3, 4})), call("vector", floats({3})),
                          call("0-d", floats({}))}};
  table["transpose.int"] = {.calls = {call("matrix", floats({3, 4}), 0, 1),
                                      call("outer", floats({2, 3, 4}), 0, -1),
                                      call("0-d", floats({}), 0, 0)}};
  table["unsqueeze"] = {.calls = {call("front", floats({3, 4}), 0), call("back", floats({3}), -1),
                                  call("0-d", floats({}), 0)}};
  table["view"] = {.calls = {call("joined", floats({3, 4}), Dims{12}),
                             call("inferred", floats({3, 4}), Dims{2, -1}),
                             call("from 0-d", floats({}), Dims{1, 1}),
                             call("empty", floats({0, 3}), Dims{3, 0})},
                   .reads_strides = true};
  table["view.dtype"] = {.calls = {call("same size", floats({3, 4}), DType::kI32),
                                   call("smaller", floats({3, 4}), DType::kBF16),
                                   call("larger", floats({3, 4}), DType::kF64)},
                         .reads_strides = true};
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF64}) {
    table["view.dtype"].differs[dtype] = "the elements are made of the argument's bits";
  }
  table["reshape"] = {.calls = {call("joined", floats({3, 4}), Dims{12}),
                                call("transposed", with_gaps(floats({4, 3})), Dims{2, 6}),
                                call("inferred", floats({2, 6}), Dims{-1, 3})}};
  table["flatten.using_ints"] = {.calls = {call("all", floats({2, 3, 2})),
                                           call("tail", floats({2, 3, 2}), 1),
                                           call("0-d", floats({}))}};
  table["resize_"] = {
      .calls = {call("fewer elements", floats({3, 4}), Dims{2, 5}),
                call("as many", floats({3, 4}), Dims{12}), call("none", floats({3}), Dims{0, 2}),
                call("integers", integers({2, 3}, 0, 9), Dims{3}),
                call("channels last", floats({2, 2, 3, 1}), Dims{1, 3, 2, 2})
                    .with("memory_format", MemoryFormat::kChannelsLast)},
      .reads_strides = true};
  table["set_"] = {.calls = {call("matrix", floats({3, 4})), call("0-d", floats({}))}};
  table["set_.source_Tensor"] = {
      .calls = {call("another shape", floats({3, 4}), floats({5}, 2)),
                call("transposed", floats({3}), with_gaps(floats({4, 3}, 2))),
                call("integers", integers({3}, 0, 9), integers({}, 0, 9, 2))}};
  table["slice_backward"] = {.calls = {call("rows", floats({2, 3}), Dims{5, 3}, 0, 1, 3, 1),
                                       call("steps", floats({2, 2}), Dims{2, 5}, 1, 0, 4, 2)}};
  table["select_backward"] = {.calls = {call("row", floats({3}), Dims{4, 3}, 0, 2),
                                        call("last column", floats({4}), Dims{4, 3}, 1, -1)}};
}

}  // namespace lockstep
