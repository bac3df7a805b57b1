#include "weights/adapters/delta.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "weights/sources/row_ranges.h"

namespace braid {
namespace {

Tensor in_float(const Tensor& numbers, at::Device device = at::kCPU) {
  return numbers.to(at::TensorOptions(at::kFloat).device(device));
}

// Adding (sign bit - infinity) to a number without its sign sets the sign bit exactly for infinity
// and NaN. Works on 64-bit words, for speed: requests wait for this.
template <class Bits>
bool are_below(Bits infinity, const Tensor& numbers) {
  constexpr auto kOnes = ~std::uint64_t(0) / std::numeric_limits<Bits>::max();  // 1 per number
  constexpr std::uint64_t kSign = std::uint64_t(1) << (8 * sizeof(Bits) - 1);
  constexpr auto kSigns = kOnes * kSign;
  const auto lacking = kOnes * (kSign - infinity);
  const auto row = numbers.contiguous();
  const auto* const bytes = static_cast<const char*>(row.const_data_ptr());
  const auto size = std::size_t(row.numel()) * sizeof(Bits);
  std::uint64_t reached = 0;
  const auto add = [&](const char* from, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, count);
    reached |= (word & ~kSigns) + lacking;
  };
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t))
    add(bytes + at, sizeof(std::uint64_t));
  if (at < size) add(bytes + at, size - at);
  return (reached & kSigns) == 0;
}

bool are_finite(const Tensor& numbers) {
  switch (numbers.scalar_type()) {
    case at::kFloat:
      return are_below<std::uint32_t>(0x7f800000, numbers);
    case at::kBFloat16:
      return are_below<std::uint16_t>(0x7f80, numbers);
    case at::kHalf:
      return are_below<std::uint16_t>(0x7c00, numbers);
    default:
      return in_float(numbers).isfinite().all().item<bool>();
  }
}

// A module, with the words to report errors about it.
struct Subject {
  const AdapterFile& file;
  const AdapterModule& module;
  const AdapterTarget& target;

  std::string where() const { return text_of(file.source(), ": '", module.name, "'"); }
  const StoredTensor* find(AdapterRole role) const { return module.find(role); }
  Tensor matrix(AdapterRole role) const;
  double factor(std::int64_t rank) const;
  double factor_of_whole() const;
  const PeftScaling* peft() const;
};

// A convolution's [N C H W] or [N C T H W] counts as a matrix [N C...].
Tensor Subject::matrix(AdapterRole role) const {
  const auto* const stored = find(role);
  require(stored != nullptr, where(), " lacks one of the tensors that belong together");
  auto numbers = finite_numbers(file, *stored);
  if (numbers.dim() == 4 || numbers.dim() == 5) numbers = numbers.flatten(1);
  require(numbers.dim() == 2 && numbers.numel() > 0, file.source(), ": tensor '",
          stored->entry.name, "' should be a matrix, its shape is ", numbers.sizes());
  return numbers;
}

// nullptr if the file says nothing of the part.
const PeftScaling* Subject::peft() const {
  const auto& scalings = file.metadata().scalings;
  const auto it = scalings.find(target.part);
  if (it != scalings.end()) return &it->second;
  const auto& beside = file.metadata().beside;
  return beside ? &*beside : nullptr;
}

// alpha / rank, with the module's own alpha, otherwise that of peft's configuration; without
// either, 1.
double Subject::factor(std::int64_t rank) const {
  if (const auto* const stored = find(AdapterRole::kAlpha)) {
    require(c10::multiply_integers(stored->entry.shape) == 1, file.source(), ": tensor '",
            stored->entry.name, "' should be one number, its shape is ",
            at::IntArrayRef(stored->entry.shape));
    const auto alpha = numbers_of(*stored).to(at::kDouble).reshape({}).item<double>();
    require(std::isfinite(alpha), where(), " has an alpha that is not finite");
    return alpha / double(rank);
  }
  return peft() ? peft()->factor(target.name, rank) : 1;
}

// LyCORIS ignores its alpha here.
double Subject::factor_of_whole() const {
  return peft() && !find(AdapterRole::kAlpha) ? peft()->factor_of_whole(target.name) : 1;
}

void check_ranks(const Subject& s, const Tensor& up, const Tensor& down) {
  require(up.size(1) == down.size(0), s.where(), " should have two factors of one rank, they are ",
          up.sizes(), " and ", down.sizes());
}

// Two factors whose product is the change, and the rank that alpha is divided by.
struct Factors {
  Tensor up, down;
  std::int64_t rank;
};

// Where the two factors may lie, and their core.
struct FactorRoles {
  AdapterRole up, down, core;
  bool is_turned;  // the first is stored as [rank rows] beside a core
};
using Role = AdapterRole;
constexpr FactorRoles kLoraFactors{Role::kUp, Role::kDown, Role::kCore, false};
constexpr FactorRoles kFirstFactors{Role::kFirstUp, Role::kFirstDown, Role::kFirstCore, true};
constexpr FactorRoles kSecondFactors{Role::kSecondUp, Role::kSecondDown, Role::kSecondCore, true};
constexpr FactorRoles kLeftFactors{Role::kLeftUp, Role::kLeftDown, Role::kUnreadable, false};
constexpr FactorRoles kRightFactors{Role::kRightUp, Role::kRightDown, Role::kRightCore, true};

// LyCORIS' Tucker form of a convolution, for all places k of the window:
//   W[n, c, k] = sum over i, j of up[n, i] core[i, j, k] down[j, c]
// The core times the second factor is the second factor of an ordinary product.
Factors factors_of(const Subject& s, const FactorRoles& roles) {
  const auto* const stored = s.find(roles.core);
  auto up = s.matrix(roles.up), down = s.matrix(roles.down);
  if (stored && roles.is_turned) up = up.t();
  const auto rank = down.size(0);
  if (stored) {
    const auto core = finite_numbers(s.file, *stored);
    require(core.dim() >= 3 && core.size(0) == up.size(1) && core.size(1) == rank, s.file.source(),
            ": tensor '", stored->entry.name, "' should be [", up.size(1), ", ", rank,
            ", window...] between its two factors, its shape is ", core.sizes());
    const auto core_IKJ = in_float(core).flatten(2).transpose(1, 2);
    down = at::matmul(core_IKJ, in_float(down)).transpose(1, 2).flatten(1);
  }
  check_ranks(s, up, down);
  return {.up = up, .down = down, .rank = rank};
}

Delta low_rank_delta(const Subject& s) {
  const auto [up, down, rank] = factors_of(s, kLoraFactors);
  const auto factor = s.factor(rank);
  const auto open = [down = down, up = up, factor](at::Device device) {
    return [a = in_float(down, device), b = in_float(up, device) * factor](Share rows) {
      return at::mm(b.narrow(0, rows.begin, rows.count), a);
    };
  };
  return {.rows = up.size(0),
          .columns = down.size(1),
          .factor = factor,
          .open = open,
          .product = StoredProduct{.down_RC = down, .up_NR = up},
          .is_dora = s.peft() && s.peft()->is_dora};
}

Delta hadamard_delta(const Subject& s) {
  const auto [up1, down1, rank] = factors_of(s, kFirstFactors);
  const auto [up2, down2, rank2] = factors_of(s, kSecondFactors);
  require(up1.size(0) == up2.size(0) && down1.size(1) == down2.size(1), s.where(),
          " should have two products of one shape, they are [", up1.size(0), ", ", down1.size(1),
          "] and [", up2.size(0), ", ", down2.size(1), "]");
  const auto factor = s.factor(rank);
  const auto open = [up1 = up1, down1 = down1, up2 = up2, down2 = down2,
                     factor](at::Device device) {
    return [a = in_float(up1, device) * factor, b = in_float(down1, device),
            c = in_float(up2, device), d = in_float(down2, device)](Share rows) {
      const auto of = [&](const Tensor& up) { return up.narrow(0, rows.begin, rows.count); };
      return at::mm(of(a), b).mul_(at::mm(of(c), d));
    };
  };
  return {.rows = up1.size(0), .columns = down1.size(1), .factor = factor, .open = open};
}

// A factor of a Kronecker product; may be a product itself.
struct Factor {
  Tensor matrix;
  std::optional<std::int64_t> rank = {};
};

Factor factor_of(const Subject& s, AdapterRole whole, const FactorRoles& roles) {
  if (s.find(whole)) return {.matrix = in_float(s.matrix(whole))};
  const auto [up, down, rank] = factors_of(s, roles);
  return {.matrix = at::mm(in_float(up), in_float(down)), .rank = rank};
}

// Rows [begin, begin + count) of kron(left, right): row i is left's row i / M times right's i % M.
Tensor rows_of_kron(const Tensor& left, const Tensor& right, Share rows) {
  const auto i = at::arange(rows.begin, rows.begin + rows.count,
                            at::TensorOptions(at::kLong).device(left.device()));
  const auto height = right.size(0);
  const auto a = left.index_select(0, i.div(height, "floor")).unsqueeze(2);
  const auto b = right.index_select(0, i.remainder(height)).unsqueeze(1);
  return (a * b).flatten(1);
}

Delta kronecker_delta(const Subject& s) {
  const auto left = factor_of(s, Role::kLeft, kLeftFactors);
  const auto right = factor_of(s, Role::kRight, kRightFactors);
  // as LyCORIS counts it: the right factor's rank if both are products
  const auto rank = right.rank ? right.rank : left.rank;
  const auto factor = rank ? s.factor(*rank) : s.factor_of_whole();
  const auto scaled = left.matrix * factor;
  const auto open = [a = scaled, b = right.matrix](at::Device device) {
    return [left = a.to(device), right = b.to(device)](Share rows) {
      return rows_of_kron(left, right, rows);
    };
  };
  return {.rows = scaled.size(0) * right.matrix.size(0),
          .columns = scaled.size(1) * right.matrix.size(1),
          .factor = factor,
          .open = open};
}

Delta stored_delta(const Subject& s, AdapterRole role) {
  const auto numbers = s.matrix(role);
  const auto open = [numbers](at::Device device) {
    return [there = in_float(numbers, device)](Share rows) {
      return there.narrow(0, rows.begin, rows.count);
    };
  };
  return {.rows = numbers.size(0), .columns = numbers.size(1), .factor = 1, .open = open};
}

bool has_any(const AdapterModule& module, AdapterRole first, AdapterRole last) {
  const auto it = module.tensors.lower_bound(first);
  return it != module.tensors.end() && it->first <= last;
}

}  // namespace

Tensor finite_numbers(const AdapterFile& file, const StoredTensor& stored) {
  require(at::isFloatingType(stored.dtype()), file.source(), ": tensor '", stored.entry.name,
          "' should hold floating-point numbers, its dtype is ",
          element_type_name(stored.entry.type));
  const auto numbers = numbers_of(stored);
  require(are_finite(numbers), file.source(), ": tensor '", stored.entry.name,
          "' holds numbers that are not finite");
  return numbers;
}

double factor_of(const AdapterFile& file, const AdapterModule& module,
                 const AdapterTarget& target) {
  const Subject subject{.file = file, .module = module, .target = target};
  return subject.factor(subject.matrix(AdapterRole::kDown).size(0));
}

std::optional<Delta> delta_of(const AdapterFile& file, const AdapterModule& module,
                              const AdapterTarget& target) {
  const Subject subject{.file = file, .module = module, .target = target};
  const bool is_low_rank = has_any(module, Role::kDown, Role::kUp) || module.find(Role::kCore);
  const bool is_hadamard = has_any(module, Role::kFirstUp, Role::kSecondCore);
  const bool is_kronecker = has_any(module, Role::kLeft, Role::kRightCore);
  const bool is_difference = module.find(Role::kDifference);
  const auto whole = module.find(Role::kWhole) ? Role::kWhole : Role::kReplacement;
  const bool is_whole = module.find(whole);
  require(is_low_rank + is_hadamard + is_kronecker + is_difference + is_whole <= 1, subject.where(),
          " should be of one kind of adapter, it has tensors of two");
  if (is_low_rank) return low_rank_delta(subject);
  if (is_hadamard) return hadamard_delta(subject);
  if (is_kronecker) return kronecker_delta(subject);
  if (is_difference) return stored_delta(subject, Role::kDifference);
  if (is_whole) return stored_delta(subject, whole);
  return {};
}

Delta with_columns(const Delta& delta, std::int64_t columns) {
  const auto padded = [more = columns - delta.columns](const Tensor& rows) {
    return at::constant_pad_nd(rows, {0, more});
  };
  auto wide = delta;
  wide.columns = columns;
  wide.open = [padded, open = delta.open](at::Device device) {
    return [padded, rows_of = open(device)](Share rows) { return padded(rows_of(rows)); };
  };
  if (wide.product) wide.product->down_RC = padded(wide.product->down_RC);
  return wide;
}

}  // namespace braid
