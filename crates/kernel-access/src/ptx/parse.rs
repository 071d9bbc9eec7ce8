//! The statements of PTX.

use std::collections::HashMap;

use super::lexer::{Lexer, NoToken, Token};
use super::{Entry, Module, PtxError};
use crate::container::Parameter;

/// Which memory a variable is in, or that it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Constant,
    Shared,
    Local,
    Parameter,
    /// A texture, a sampler or a surface.
    Opaque,
    Function,
}

/// The type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Predicate,
    Bits(u32),
}

/// A variable that is declared: a parameter, or one of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    /// `None` for a register.
    pub(super) space: Option<Space>,
    pub(super) kind: Type,
    pub(super) alignment: u32,
    pub(super) bytes: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) returns: Vec<Variable<'a>>,
    pub(super) parameters: Vec<Variable<'a>>,
    /// Its statements, and the line that they begin in.
    pub(super) body: Option<(&'a str, u32)>,
}

/// Those of one instruction.
pub(super) type Operands<'a> = [Operand<'a>];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand<'a> {
    Name(&'a str),
    /// A name and bytes after it.
    Place(&'a str, i64),
    Not(&'a str),
    /// Two destinations.
    Both(&'a str, &'a str),
    Integer(u64),
    Single(u32),
    Double(u64),
    Address(Option<&'a str>, i64),
    Vector(Vec<Operand<'a>>),
    List(Vec<Operand<'a>>),
    /// Of a kind that no known instruction has.
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement<'a> {
    Open,
    Close,
    /// Of several registers, how many there are.
    Variable(Variable<'a>, Option<u32>),
    Registers(Type, Vec<&'a str>),
    Label(&'a str),
    /// The last label is a list of these.
    Targets(Vec<&'a str>),
    Instruction(Instruction<'a>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Instruction<'a> {
    pub(super) line: u32,
    /// The predicate, and whether its opposite counts.
    pub(super) guard: Option<(&'a str, bool)>,
    pub(super) name: &'a str,
    pub(super) operands: Vec<Operand<'a>>,
}

/// Operands within operands, and braces within braces.
const MOST_DEPTH: u32 = 64;

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, line: u32) -> Self {
        Self { lexer: Lexer::new(text, line) }
    }

    fn damaged(&self) -> PtxError {
        PtxError::Damaged(self.lexer.last_line())
    }

    fn peek(&self) -> Result<Option<Token<'a>>, PtxError> {
        self.lexer.peek().map_err(|NoToken| self.damaged())
    }

    fn next(&mut self) -> Result<Option<Token<'a>>, PtxError> {
        self.lexer.next().map_err(|NoToken| self.damaged())
    }

    fn some(&mut self) -> Result<Token<'a>, PtxError> {
        self.next()?.ok_or_else(|| self.damaged())
    }

    fn eat(&mut self, mark: char) -> Result<bool, PtxError> {
        self.lexer.eat(mark).map_err(|NoToken| self.damaged())
    }

    fn expect(&mut self, mark: char) -> Result<(), PtxError> {
        if self.eat(mark)? { Ok(()) } else { Err(self.damaged()) }
    }

    fn word(&mut self) -> Result<&'a str, PtxError> {
        match self.some()? {
            Token::Word(word) => Ok(word),
            _ => Err(self.damaged()),
        }
    }

    fn integer(&mut self) -> Result<u64, PtxError> {
        match self.some()? {
            Token::Integer(number) => Ok(number),
            _ => Err(self.damaged()),
        }
    }

    fn small(&mut self) -> Result<u32, PtxError> {
        u32::try_from(self.integer()?).map_err(|_| self.damaged())
    }

    /// After an opening mark, all up to the closing one that belongs to it.
    fn skip_to(&mut self, open: char, close: char) -> Result<(), PtxError> {
        let mut depth = 1_u64;
        while depth > 0 {
            match self.some()? {
                Token::Mark(mark) if mark == open => depth += 1,
                Token::Mark(mark) if mark == close => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// What declares a variable, after its space: its type, its name, its size.
    fn variable(&mut self, space: Option<Space>) -> Result<Variable<'a>, PtxError> {
        let (mut alignment, mut elements, mut kind) = (1, 1, None);
        let name = loop {
            let word = self.word()?;
            match word {
                ".align" => alignment = self.small()?,
                ".v2" => elements = 2,
                ".v4" => elements = 4,
                ".v8" => elements = 8,
                // The alignment of what a pointer points to is none of the pointer's.
                ".ptr" => {
                    while let Some(Token::Word(word)) = self.peek()? {
                        match word {
                            ".align" => {
                                self.next()?;
                                self.small()?;
                            }
                            ".global" | ".shared" | ".local" | ".const" => {
                                self.next()?;
                            }
                            _ => break,
                        }
                    }
                }
                ".attribute" => {
                    self.expect('(')?;
                    self.skip_to('(', ')')?;
                }
                _ => match word.strip_prefix('.') {
                    Some(name) => kind = Some(type_of(name).ok_or_else(|| self.damaged())?),
                    None => break word,
                },
            }
        };
        let kind = kind.ok_or_else(|| self.damaged())?;
        let element = match kind {
            Type::Predicate => 1,
            Type::Bits(bits) => bits / 8,
        };
        if !u32::is_power_of_two(alignment) {
            return Err(self.damaged());
        }
        let mut bytes = element * elements;
        alignment = alignment.max(bytes);
        while self.eat('[')? {
            // Of an array without a size nothing is needed.
            let count = if self.peek()? == Some(Token::Mark(']')) { 0 } else { self.small()? };
            bytes = bytes.checked_mul(count).ok_or_else(|| self.damaged())?;
            self.expect(']')?;
        }
        Ok(Variable { name, space, kind, alignment, bytes })
    }

    /// Between round brackets.
    fn parameters(&mut self) -> Result<Vec<Variable<'a>>, PtxError> {
        let mut all = Vec::new();
        if self.eat(')')? {
            return Ok(all);
        }
        loop {
            let space = match self.word()? {
                ".param" => Some(Space::Parameter),
                ".reg" => None,
                _ => return Err(self.damaged()),
            };
            all.push(self.variable(space)?);
            match self.some()? {
                Token::Mark(',') => {}
                Token::Mark(')') => return Ok(all),
                _ => return Err(self.damaged()),
            }
        }
    }

    /// An entry, or a function.
    fn function(&mut self, is_entry: bool) -> Result<Function<'a>, PtxError> {
        let mut returns = Vec::new();
        if !is_entry && self.eat('(')? {
            returns = self.parameters()?;
        }
        let name = self.word()?;
        let parameters = if self.eat('(')? { self.parameters()? } else { Vec::new() };
        let body = loop {
            match self.some()? {
                Token::Mark('{') => {
                    let (begin, line) = (self.lexer.rest(), self.lexer.last_line());
                    self.skip_to('{', '}')?;
                    let text = self.lexer.since(begin);
                    // Without the closing brace.
                    break Some((
                        text.get(..text.len().saturating_sub(1)).unwrap_or_default(),
                        line,
                    ));
                }
                Token::Mark(';') => break None,
                // How it is to be compiled.
                Token::Word(_) | Token::Integer(_) | Token::Mark(',') | Token::Text(_) => {}
                _ => return Err(self.damaged()),
            }
        };
        Ok(Function { name, returns, parameters, body })
    }

    /// The names of a module's variables, after their space.
    fn names(&mut self) -> Result<Vec<&'a str>, PtxError> {
        let mut names = Vec::new();
        let mut is_next = true;
        loop {
            match self.some()? {
                Token::Mark(';') => return Ok(names),
                Token::Mark('{') => self.skip_to('{', '}')?,
                Token::Mark('(') => self.skip_to('(', ')')?,
                Token::Mark(',') => is_next = true,
                Token::Word(word) if is_next && !word.starts_with('.') => {
                    names.push(word);
                    is_next = false;
                }
                _ => {}
            }
        }
    }

    /// The next statement of a body.
    pub(super) fn statement(&mut self) -> Result<Option<Statement<'a>>, PtxError> {
        loop {
            let Some(token) = self.next()? else { return Ok(None) };
            let guard = match token {
                Token::Mark('{') => return Ok(Some(Statement::Open)),
                Token::Mark('}') => return Ok(Some(Statement::Close)),
                Token::Mark(';') => continue,
                Token::Mark('@') => {
                    let negated = self.eat('!')?;
                    Some((self.word()?, negated))
                }
                Token::Word(word) => match self.of_word(word)? {
                    Some(statement) => return Ok(Some(statement)),
                    None => continue,
                },
                _ => return Err(self.damaged()),
            };
            let name = self.word()?;
            return self.instruction(name, guard).map(Some);
        }
    }

    /// A statement that begins with this word, if it is one that matters.
    fn of_word(&mut self, word: &'a str) -> Result<Option<Statement<'a>>, PtxError> {
        let space = match word {
            ".reg" => None,
            ".param" => Some(Space::Parameter),
            ".local" => Some(Space::Local),
            ".shared" => Some(Space::Shared),
            ".global" => Some(Space::Global),
            ".const" => Some(Space::Constant),
            ".loc" | ".file" => {
                self.lexer.skip_line();
                return Ok(None);
            }
            ".pragma" | ".callprototype" | ".calltargets" => {
                while self.some()? != Token::Mark(';') {}
                return Ok(None);
            }
            ".branchtargets" => {
                let mut targets = Vec::new();
                loop {
                    targets.push(self.word()?);
                    if !self.eat(',')? {
                        self.expect(';')?;
                        return Ok(Some(Statement::Targets(targets)));
                    }
                }
            }
            _ if word.starts_with('.') => return Err(self.damaged()),
            _ if self.eat(':')? => return Ok(Some(Statement::Label(word))),
            _ => return self.instruction(word, None).map(Some),
        };
        let variable = self.variable(space)?;
        let mut count = None;
        if space.is_none() && self.eat('<')? {
            count = Some(self.small()?);
            self.expect('>')?;
        }
        // Several names have one type.
        if self.peek()? == Some(Token::Mark(',')) {
            return self.more(variable, count).map(Some);
        }
        if space.is_some() && self.eat('=')? {
            while self.some()? != Token::Mark(';') {}
        } else {
            self.expect(';')?;
        }
        Ok(Some(Statement::Variable(variable, count)))
    }

    /// Registers of one type.
    fn more(
        &mut self,
        variable: Variable<'a>,
        count: Option<u32>,
    ) -> Result<Statement<'a>, PtxError> {
        if variable.space.is_some() || count.is_some() {
            return Err(self.damaged());
        }
        let mut all = vec![variable.name];
        while self.eat(',')? {
            all.push(self.word()?);
        }
        self.expect(';')?;
        Ok(Statement::Registers(variable.kind, all))
    }

    fn instruction(
        &mut self,
        name: &'a str,
        guard: Option<(&'a str, bool)>,
    ) -> Result<Statement<'a>, PtxError> {
        let line = self.lexer.last_line();
        let mut operands = Vec::new();
        if !self.eat(';')? {
            loop {
                operands.push(self.operand(0)?);
                match self.some()? {
                    Token::Mark(',') => {}
                    Token::Mark(';') => break,
                    _ => return Err(self.damaged()),
                }
            }
        }
        Ok(Statement::Instruction(Instruction { line, guard, name, operands }))
    }

    fn operand(&mut self, depth: u32) -> Result<Operand<'a>, PtxError> {
        if depth > MOST_DEPTH {
            return Err(self.damaged());
        }
        Ok(match self.some()? {
            Token::Integer(number) => Operand::Integer(number),
            Token::Single(bits) => Operand::Single(bits),
            Token::Double(bits) => Operand::Double(bits),
            Token::Mark('-') => match self.some()? {
                Token::Integer(number) => Operand::Integer(number.wrapping_neg()),
                Token::Single(_) | Token::Double(_) | Token::Word(_) => Operand::Other,
                _ => return Err(self.damaged()),
            },
            Token::Mark('~') => Operand::Integer(!self.integer()?),
            Token::Mark('!') => Operand::Not(self.word()?),
            Token::Mark('[') => self.address()?,
            Token::Mark('{') => Operand::Vector(self.operands('}', depth)?),
            Token::Mark('(') => Operand::List(self.operands(')', depth)?),
            Token::Word(name) => match self.peek()? {
                Some(Token::Mark('|')) => {
                    self.next()?;
                    Operand::Both(name, self.word()?)
                }
                Some(Token::Mark('+' | '-')) => Operand::Place(name, self.offset()?),
                _ => Operand::Name(name),
            },
            _ => return Err(self.damaged()),
        })
    }

    fn operands(&mut self, close: char, depth: u32) -> Result<Vec<Operand<'a>>, PtxError> {
        let mut all = Vec::new();
        if self.eat(close)? {
            return Ok(all);
        }
        loop {
            all.push(self.operand(depth + 1)?);
            match self.some()? {
                Token::Mark(',') => {}
                Token::Mark(mark) if mark == close => return Ok(all),
                _ => return Err(self.damaged()),
            }
        }
    }

    /// `+4`, `-4`, `+-4`.
    fn offset(&mut self) -> Result<i64, PtxError> {
        let mut negative = false;
        loop {
            match self.some()? {
                Token::Mark('+') => {}
                Token::Mark('-') => negative = !negative,
                Token::Integer(number) => {
                    let number = number as i64;
                    return Ok(if negative { number.wrapping_neg() } else { number });
                }
                _ => return Err(self.damaged()),
            }
        }
    }

    /// After the opening bracket.
    fn address(&mut self) -> Result<Operand<'a>, PtxError> {
        let base = match self.peek()? {
            Some(Token::Word(name)) => {
                self.next()?;
                Some(name)
            }
            Some(Token::Integer(_) | Token::Mark('-')) => None,
            _ => return Err(self.damaged()),
        };
        let offset = match self.peek()? {
            Some(Token::Integer(_) | Token::Mark('+' | '-')) => self.offset()?,
            _ => 0,
        };
        match self.some()? {
            Token::Mark(']') => Ok(Operand::Address(base, offset)),
            // Coordinates.
            Token::Mark(',') => {
                self.skip_to('[', ']')?;
                Ok(Operand::Other)
            }
            _ => Err(self.damaged()),
        }
    }
}

/// By its name without the point.
pub(super) fn type_of(name: &str) -> Option<Type> {
    Some(match name {
        "pred" => Type::Predicate,
        "b8" | "u8" | "s8" => Type::Bits(8),
        "b16" | "u16" | "s16" | "f16" | "bf16" => Type::Bits(16),
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" | "tf32" => Type::Bits(32),
        "b64" | "u64" | "s64" | "f64" => Type::Bits(64),
        "b128" => Type::Bits(128),
        _ => return None,
    })
}

/// Directives before a function or a variable.
const LINKAGE: [&str; 4] = [".visible", ".extern", ".weak", ".common"];

pub(super) fn module(text: &str) -> Result<Module<'_>, PtxError> {
    let mut parser = Parser::new(text, 1);
    let (mut architecture, mut is_wide) = (None, false);
    let mut functions = Vec::new();
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut variables = HashMap::new();
    while let Some(token) = parser.next()? {
        let word = match token {
            Token::Word(word) => word,
            Token::Mark(';') => continue,
            // `@@DWARF`, in old texts.
            Token::Mark('@') => {
                parser.lexer.skip_line();
                continue;
            }
            _ => return Err(parser.damaged()),
        };
        let space = match word {
            ".version" | ".file" | ".loc" => {
                parser.lexer.skip_line();
                continue;
            }
            ".target" => {
                let name = parser.word()?;
                let digits = name.strip_prefix("sm_").map(|name| name.trim_end_matches(['a', 'f']));
                let number = digits.and_then(|digits| digits.parse().ok());
                architecture = Some(number.ok_or_else(|| parser.damaged())?);
                parser.lexer.skip_line();
                continue;
            }
            ".address_size" => {
                is_wide = parser.integer()? == 64;
                continue;
            }
            ".section" => {
                while parser.some()? != Token::Mark('{') {}
                parser.skip_to('{', '}')?;
                continue;
            }
            ".pragma" | ".alias" => {
                while parser.some()? != Token::Mark(';') {}
                continue;
            }
            ".entry" | ".func" => {
                let function = parser.function(word == ".entry")?;
                variables.insert(function.name, Space::Function);
                if word == ".entry" && function.body.is_some() {
                    let parameters =
                        layout(&function.parameters).ok_or_else(|| parser.damaged())?;
                    let number = functions.len();
                    entries.push(Entry { name: function.name, parameters, function: number });
                }
                functions.push(function);
                continue;
            }
            ".global" => Space::Global,
            ".const" => Space::Constant,
            ".shared" => Space::Shared,
            ".local" => Space::Local,
            ".tex" => Space::Opaque,
            _ if LINKAGE.contains(&word) => continue,
            _ => return Err(parser.damaged()),
        };
        for name in parser.names()? {
            variables.insert(name, space);
        }
    }
    let architecture = architecture.ok_or_else(|| parser.damaged())?;
    if !is_wide {
        return Err(PtxError::Narrow);
    }
    Ok(Module { architecture, entries, functions, variables })
}

/// Each parameter at the next multiple of its alignment.
fn layout(parameters: &[Variable<'_>]) -> Option<Vec<Parameter>> {
    let mut end = 0_u32;
    let mut all = Vec::new();
    for (ordinal, one) in parameters.iter().enumerate() {
        let offset = end.checked_next_multiple_of(one.alignment)?;
        end = offset.checked_add(one.bytes)?;
        // No device takes more.
        if end > 1 << 15 || one.kind == Type::Predicate || one.space.is_none() {
            return None;
        }
        all.push(Parameter { ordinal: ordinal as u16, offset, size: one.bytes });
    }
    Some(all)
}
