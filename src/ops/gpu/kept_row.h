// The part of a row a thread keeps in registers, so that the row is read only once.
#pragma once

#include "ops/gpu/rows.h"

namespace braid::ops::gpu {

// One of the threads that share a row.
struct Sharer {
  int number, of;
};
template <class Block>
BRAID_DEVICE Sharer whole_block(const Block& block) {
  return {block.thread(), block.size()};
}

// Every `of`-th vector of N numbers, as float32; at most kVectors.
template <int N, int kVectors>
class KeptRow {
 public:
  template <class T>
  BRAID_DEVICE void read(Sharer sharer, const T* data, std::int64_t width) {
    fill(sharer, width, [&](std::int64_t i) { return load_floats<T, N>(data, i); });
  }

  // Vector i is make(i).
  template <class Make>
  BRAID_DEVICE void fill(Sharer sharer, std::int64_t width, Make make) {
    sharer_ = sharer;
    vectors_ = width / N;
    for (int j = 0; j < kVectors; ++j)
      if (index(j) < vectors_) kept_[j] = make(index(j));
  }

  // visit(i, vector i)
  template <class Visit>
  BRAID_DEVICE void for_each(Visit visit) const {
    for (int j = 0; j < kVectors; ++j)
      if (index(j) < vectors_) visit(index(j), kept_[j]);
  }

  // Replaces each vector by change(vector). All threads call it as often, with zeros for vectors
  // past the row's end, so that it may exchange numbers with the other lanes.
  template <class Change>
  BRAID_DEVICE void change_all(Change change) {
    for (int j = 0; j < kVectors; ++j) {
      const auto changed = change(index(j) < vectors_ ? kept_[j] : Floats<N>{});
      if (index(j) < vectors_) kept_[j] = changed;
    }
  }

  // Vector i becomes make(i, vector i).
  template <class Make>
  BRAID_DEVICE void replace(Make make) {
    for (int j = 0; j < kVectors; ++j)
      if (index(j) < vectors_) kept_[j] = make(index(j), kept_[j]);
  }

  BRAID_DEVICE float sum() const {
    float sum = 0;
    for_each([&](std::int64_t, const Floats<N>& x) {
      for (int k = 0; k < N; ++k) sum += x.values[k];
    });
    return sum;
  }

  BRAID_DEVICE float sum_of_squares(float mean) const {
    float sum = 0;
    for_each([&](std::int64_t, const Floats<N>& x) {
      for (int k = 0; k < N; ++k) sum += (x.values[k] - mean) * (x.values[k] - mean);
    });
    return sum;
  }

  BRAID_DEVICE float largest() const {
    float largest = 0;
    for_each([&](std::int64_t, const Floats<N>& x) {
      for (int k = 0; k < N; ++k) largest = Larger()(fabsf(x.values[k]), largest);
    });
    return largest;
  }

 private:
  BRAID_DEVICE std::int64_t index(int j) const {
    return sharer_.number + std::int64_t(j) * sharer_.of;
  }

  std::int64_t vectors_;
  Sharer sharer_;
  Floats<N> kept_[kVectors];
};

}  // namespace braid::ops::gpu
