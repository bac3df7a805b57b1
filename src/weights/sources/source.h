// Where the tensors that a model asks for come from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/load_options.h"
#include "weights/names.h"
#include "weights/sources/recipe.h"

namespace braid {

// A tensor that a model asks for.
struct AskedTensor {
  std::string layer, name;
  std::vector<std::int64_t> shape;  // of all of it
  at::ScalarType dtype;
  enum class Kind { kNumbers, kMatrix, kTable } kind;  // kTable: stays where it is stored
  PageUse use = PageUse::kRepeated;
  std::vector<StoredTensor> stored = {};  // what it is made of, scales of codes at last

  std::string path() const { return layer.empty() ? name : layer + "." + name; }
};

// What is delivered of it, and in which form: that of numbers, or of what is stored in 8 bits.
struct Delivery {
  Wanted wanted;
  Quantize numbers = Quantize::kNone, codes = Quantize::kNone;
  Coded coded = Coded::kWidened;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::string& name() const = 0;

  // How it comes about, or nothing where nothing is to be read. Says in `asked` what a checkpoint
  // has of it. Throws InputError when it is absent, has another shape, or holds neither
  // floating-point numbers nor, if it is a matrix, codes.
  virtual std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) = 0;

  // Leaves what is below `scope` unused on purpose, and returns its bytes.
  virtual std::int64_t skip(const std::string& /*scope*/) { return 0; }
  // Throws InputError naming what no module has asked for; returns the bytes of what may be unused.
  virtual std::int64_t finish() { return 0; }
};

// The tensors of a checkpoint, of each of which `names` says what it is stored as.
std::shared_ptr<TensorSource> stored_tensors(Checkpoint checkpoint, Names names);
// Every tensor that is asked for, with drawn values.
std::shared_ptr<TensorSource> synthetic_tensors();
// Those of `source`, checked and not read.
std::shared_ptr<TensorSource> unread_tensors(std::shared_ptr<TensorSource> source);
// Likewise; all that is asked for is added to `asked`.
std::shared_ptr<TensorSource> surveyed_tensors(std::shared_ptr<TensorSource> source,
                                               std::vector<AskedTensor>& asked);

}  // namespace braid
