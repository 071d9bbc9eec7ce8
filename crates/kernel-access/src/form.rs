//! Whole numbers that are sums of multiples of unknown numbers.

/// The number of a symbol in [`Symbols`](crate::symbols::Symbols).
pub(crate) type Symbol = u32;

/// Bounds, each if there is one.
pub(crate) type Bounds = (Option<i128>, Option<i128>);

/// No form has more terms, and no factor is larger: what would be has a symbol of its own.
pub(crate) const MOST_TERMS: usize = 12;
pub(crate) const MOST: i128 = 1 << 100;

/// The numbers that a register can have.
pub(crate) const SINGLE: i128 = 1 << 32;

/// A number, and multiples of symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) constant: i128,
    /// In the order of the symbols; no factor is zero.
    pub(crate) terms: Vec<(Symbol, i128)>,
}

/// The product: of small numbers, as nearly all are, at once.
pub(crate) fn product(one: i128, two: i128) -> Option<i128> {
    match (i64::try_from(one), i64::try_from(two)) {
        (Ok(one), Ok(two)) => Some(i128::from(one) * i128::from(two)),
        _ => one.checked_mul(two),
    }
}

impl Form {
    pub(crate) fn number(constant: i128) -> Self {
        Self { constant, terms: Vec::new() }
    }

    pub(crate) fn symbol(symbol: Symbol) -> Self {
        Self { constant: 0, terms: vec![(symbol, 1)] }
    }

    /// The number, if it is one without symbols.
    pub(crate) fn as_number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub(crate) fn factor(&self, symbol: Symbol) -> i128 {
        self.terms
            .binary_search_by_key(&symbol, |term| term.0)
            .map_or(0, |at| self.terms.get(at).map_or(0, |term| term.1))
    }

    /// The sum of this and `times` the other.
    pub(crate) fn plus(&self, times: i128, other: &Self) -> Option<Self> {
        let mut sum = Self {
            constant: self.constant.checked_add(product(other.constant, times)?)?,
            terms: Vec::with_capacity(self.terms.len() + other.terms.len()),
        };
        let (mut first, mut second) =
            (self.terms.iter().copied().peekable(), other.terms.iter().copied().peekable());
        loop {
            let (symbol, factor) = match (first.peek().copied(), second.peek().copied()) {
                (None, None) => break,
                (Some(one), None) => {
                    first.next();
                    one
                }
                (Some(one), Some(other)) if one.0 < other.0 => {
                    first.next();
                    one
                }
                (Some(one), Some(other)) if one.0 == other.0 => {
                    first.next();
                    second.next();
                    (one.0, one.1.checked_add(product(other.1, times)?)?)
                }
                (_, Some(other)) => {
                    second.next();
                    (other.0, product(other.1, times)?)
                }
            };
            if factor != 0 {
                sum.terms.push((symbol, factor));
            }
        }
        let is_small = |number: i128| number.unsigned_abs() < MOST.unsigned_abs();
        let small = is_small(sum.constant) && sum.terms.iter().all(|term| is_small(term.1));
        (small && sum.terms.len() <= MOST_TERMS).then_some(sum)
    }

    pub(crate) fn times(&self, factor: i128) -> Option<Self> {
        Self::number(0).plus(factor, self)
    }

    /// Whether both are the same modulo 2^32.
    pub(crate) fn is_congruent(&self, other: &Self) -> bool {
        self.plus(-1, other).is_some_and(|rest| {
            rest.constant % SINGLE == 0 && rest.terms.iter().all(|term| term.1 % SINGLE == 0)
        })
    }

    /// A bit for each symbol. Forms whose masks have no bit in common have no symbol in common.
    pub(crate) fn mask(&self) -> u64 {
        self.terms.iter().fold(0, |mask, term| mask | 1 << (term.0 % 64))
    }

    pub(crate) fn and(&self, number: i128) -> Option<Self> {
        self.plus(number, &Self::number(1))
    }
}

pub(crate) fn gcd(first: i128, second: i128) -> i128 {
    let (mut first, mut second) = (first.abs(), second.abs());
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}
