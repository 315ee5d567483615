// Groups of verdicts and the numbers of the field. The same as in SQL, so that either can be checked by the other.

// Rows of verdicts by the value of a column, in the order of its names: {name, counts by status, sorted speedups}.
function grouped(data, rows, column) {
  const { verdicts, names } = data;
  const groups = names[column].map((name, code) => ({
    name: String(name),
    code,
    total: 0,
    statuses: [],
    speedups: [],
  }));
  for (const row of rows) {
    const group = groups[verdicts[column][row]];
    const status = verdicts.status[row];
    group.total += 1;
    group.statuses[status] = (group.statuses[status] ?? 0) + 1;
    if (verdicts.speedup[row] !== null) group.speedups.push(verdicts.speedup[row]);
  }
  const found = groups.filter((group) => group.total);
  for (const group of found) group.speedups.sort((one, other) => one - other);
  return found;
}

function geomean(values) {
  if (!values.length) return null;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

// Interpolated between the two nearest, as SQL's quantile_cont does.
function quantile(sorted, probability) {
  if (!sorted.length) return null;
  const place = probability * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

// How many of the sorted values are above the limit.
function above(sorted, limit) {
  let low = 0;
  for (let high = sorted.length; low < high;) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return sorted.length - low;
}
