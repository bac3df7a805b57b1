// Sources of the tensors a model asks for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/load_options.h"
#include "weights/names.h"
#include "weights/sources/recipe.h"

namespace braid {

// A tensor a model asks for.
struct AskedTensor {
  std::string layer, name;
  std::vector<std::int64_t> shape;  // of the whole tensor
  at::ScalarType dtype;
  enum class Kind { kNumbers, kMatrix, kTable } kind;  // kTable: stays where it is stored
  PageUse use = PageUse::kRepeated;
  std::vector<StoredTensor> stored = {};  // what it is built from; scales of codes last

  std::string path() const { return layer.empty() ? name : layer + "." + name; }
};

// The share to deliver, and its form: for stored numbers, and for stored 8-bit codes.
struct Delivery {
  Wanted wanted;
  Quantize numbers = Quantize::kNone, codes = Quantize::kNone;
  PackedWeights packed = PackedWeights::kWidened;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::string& name() const = 0;

  // How to build it, or nullopt if nothing is to be read. Records in `asked` what the checkpoint
  // stores for it. Throws InputError if it is absent, has another shape, or holds neither
  // floating-point numbers nor, for a matrix, codes.
  virtual std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) = 0;

  // Deliberately leaves everything below `scope` unused; returns its bytes.
  virtual std::int64_t skip(const std::string& /*scope*/) { return 0; }
  // Throws InputError naming the tensors no module asked for; returns the bytes of those that may
  // be unused.
  virtual std::int64_t finish() { return 0; }
};

// A checkpoint's tensors; `names` maps its names to ours.
std::shared_ptr<TensorSource> stored_tensors(Checkpoint checkpoint, Names names);
// Every tensor asked for, with drawn values.
std::shared_ptr<TensorSource> synthetic_tensors();
// Tensors of `source`, checked but not read.
std::shared_ptr<TensorSource> unread_tensors(std::shared_ptr<TensorSource> source);
// As unread_tensors(); everything asked for is added to `asked`.
std::shared_ptr<TensorSource> surveyed_tensors(std::shared_ptr<TensorSource> source,
                                               std::vector<AskedTensor>& asked);

}  // namespace braid
