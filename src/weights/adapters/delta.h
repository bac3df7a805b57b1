// What an adapter's module adds to a weight [N C], at scale 1, in float32.
//
//   LoRA        alpha / rank * B A                  A [R C], B [N R]
//   LoHa        alpha / rank * (B1 A1) o (B2 A2)    o multiplies element by element
//   LoKr        kron(W1, W2), each whole or B A; times alpha / rank if one is a product
//   difference  as it is stored, and so a weight that replaces the model's
#pragma once

#include <functional>
#include <optional>

#include "weights/adapters/adapter_file.h"
#include "weights/adapters/adapter_names.h"
#include "weights/matrix.h"

namespace braid {

// The stored B and A of a delta that is only their product and a factor.
struct StoredProduct {
  Tensor down_RC, up_NR;
};

struct Delta {
  std::int64_t rows, columns;
  double factor;  // multiplies what is stored
  // Moves the factors to a device; the returned function computes rows of all columns.
  std::function<std::function<Tensor(Share rows)>(at::Device)> open;
  std::optional<StoredProduct> product = {};
  bool is_dora = false;  // by peft's configuration, whether or not it has magnitudes
};

// nullopt if the module changes no weight (but a bias, say). Throws InputError naming file and
// module if factors do not match, numbers are not finite, or half of a pair is missing.
std::optional<Delta> delta_of(const AdapterFile& file, const AdapterModule& module,
                              const AdapterTarget& target);

// The same for a weight with more columns, which stay as they are.
Delta with_columns(const Delta& delta, std::int64_t columns);

// alpha / rank of a LoRA.
double factor_of(const AdapterFile& file, const AdapterModule& module, const AdapterTarget& target);

// The numbers of a file's tensor: decoded if it is coded, else in place if they may be used there.
// Throws InputError unless all of them are finite.
Tensor finite_numbers(const AdapterFile& file, const StoredTensor& stored);

}  // namespace braid
