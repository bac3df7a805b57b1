#include "weights/files/packed_weights.h"

#include "base/error.h"

namespace braid {
namespace {

std::string named(const StoredTensor& stored) {
  return text_of(stored.file->path().string(), ": tensor '", stored.entry.name, "'");
}

// The rows and columns of the matrix that a tensor's extents stand for.
struct Extents {
  std::int64_t rows, columns;
};

// The type and shape that a tensor of the form should have; R is the rank of low-rank factors.
void check_fits(const StoredTensor& stored, const PackedTensor& tensor, const Extents& matrix,
                std::int64_t rank) {
  const auto cell = cell_of(tensor.which, tensor.columns);
  const bool is_smoothing = tensor.which == MatrixTensor::kSmoothing;
  const std::vector<std::int64_t> want = {cell.rows > 0  ? matrix.rows
                                          : is_smoothing ? 1
                                                         : rank,
                                          cell.columns > 0 ? matrix.columns / cell.columns : rank};
  require(stored.entry.shape == want, named(stored), " should have the shape ",
          at::IntArrayRef(want), ", it has ", at::IntArrayRef(stored.entry.shape));
  const bool may_be_bytes =
      tensor.which == MatrixTensor::kValues || tensor.which == MatrixTensor::kZeros;
  require(at::isFloatingType(stored.dtype()) ||
              (may_be_bytes && stored.entry.type == ElementType::kUint8),
          named(stored), " should hold ", may_be_bytes ? "bytes" : "floating-point numbers",
          ", its dtype is ", element_type_name(stored.entry.type));
}

// A vector of inputs counts as a row.
StoredTensor as_matrix(StoredTensor stored) {
  auto& shape = stored.entry.shape;
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  return stored;
}

StoredTensor packed_matrix(const PackedForm& form, std::vector<StoredTensor> tensors) {
  const auto& values = tensors.front();
  require(values.entry.shape.size() == 2, named(values), " should be a matrix");
  const Extents matrix{.rows = values.entry.shape[0],
                       .columns = values.entry.shape[1] * form.tensors.front().columns};
  require(matrix.columns % form.group() == 0, named(values), " should have whole groups of ",
          form.group(), " columns, it has ", matrix.columns);
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (form.tensors[i].which == MatrixTensor::kDown && !tensors[i].entry.shape.empty())
      rank = tensors[i].entry.shape[0];
  auto joined = values;
  joined.entry.shape = {matrix.rows, matrix.columns};
  PackedTensors packed{.form = &form, .tensors = {}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_fits(tensors[i], form.tensors[i], matrix, rank);
    packed.tensors.push_back(std::make_shared<const StoredTensor>(std::move(tensors[i])));
  }
  joined.packed = std::make_shared<const PackedTensors>(std::move(packed));
  return joined;
}

// Takes the tensors of the form from the layer that begins with `base`; the matrix stands for its
// values.
std::vector<StoredTensor> taken_of(const PackedForm& form, const std::string& base,
                                   StoredByName& tensors, StoredByName& removed) {
  std::vector<StoredTensor> all;
  for (const auto& tensor : form.tensors) {
    auto node = tensors.extract(base + tensor.name);
    require(!node.empty(), all.empty() ? base : named(all.front()), " is of ", form.name, ", but '",
            base, tensor.name, "' is missing");
    all.push_back(as_matrix(node.mapped()));
    if (all.size() > 1) removed.insert(std::move(node));
  }
  return all;
}

}  // namespace

StoredByName join_packed(StoredByName& tensors) {
  StoredByName removed;
  for (const auto& form : known_packed_forms()) {
    const auto ending = std::string(".") + form.tensors.front().name;
    std::vector<std::string> bases;
    for (const auto& [name, stored] : tensors)
      if (name.ends_with(ending))
        bases.push_back(name.substr(0, name.size() - ending.size()) + ".");
    for (const auto& base : bases) {
      auto matrix = packed_matrix(form, taken_of(form, base, tensors, removed));
      const bool is_new = tensors.emplace(base + "weight", std::move(matrix)).second;
      require(is_new, "tensor '", base, "weight' is there twice, once in ", form.name);
    }
  }
  return removed;
}

}  // namespace braid
