#include "kernels/common/classifier_products.h"

#include <algorithm>

namespace lockstep {

namespace {

int64_t lines(int64_t length) { return std::max<int64_t>(1, length); }

}  // namespace

Product ClassifierChunk::product() const {
  Product product;
  product.dtype = dtype;
  product.m = rows;
  product.n = classes;
  product.k = width;
  product.a = {input, lines(width)};
  product.b = {weight, lines(width), true};
  product.result = logits;
  product.ld = lines(classes);
  return product;
}

Product ClassifierChunk::input_gradient(void* gradient) const {
  Product product;
  product.dtype = dtype;
  product.wide = size_of(dtype) == 2;
  product.m = rows;
  product.n = width;
  product.k = classes;
  product.a = {logits, lines(classes)};
  product.b = {weight, lines(width)};
  product.alpha = 1 / scale;
  product.result = gradient;
  product.ld = lines(width);
  return product;
}

Product ClassifierChunk::weight_gradient(void* gradient, bool adds) const {
  Product product;
  product.dtype = dtype;
  product.wide = size_of(dtype) == 2;
  product.m = classes;
  product.n = width;
  product.k = rows;
  product.a = {logits, lines(classes), true};
  product.b = {input, lines(width)};
  product.alpha = 1 / scale;
  product.result = gradient;
  product.ld = lines(width);
  if (!adds) return product;
  product.addend = {gradient, 0, lines(width), 1};
  product.beta = 1;
  return product;
}

}  // namespace lockstep
