"""The words of historian exports: column names, states, status words, units and months.

Words are compared after `plain_word`: lower case, without blanks, brackets and punctuation.
"""

import re
import unicodedata
from typing import Final

__all__ = [
    "BAD_WORDS",
    "DATE_NAMES",
    "GOOD_WORDS",
    "KEY_NAMES",
    "LABEL_NAMES",
    "META_NAMES",
    "MISSING_MARKS",
    "MONTHS",
    "QUALITY_NAMES",
    "ROW_NAMES",
    "STATES",
    "TAG_NAMES",
    "TIME_NAMES",
    "TIME_OF_DAY_NAMES",
    "TRUTH",
    "UNITS",
    "UNIT_NAMES",
    "VALUE_NAMES",
    "is_status",
    "is_unit",
    "plain_word",
    "spelt_unit",
]

LONGEST_WORD = 200
"""Longer texts are no words; a pattern would search them for long."""
BRACKETED = re.compile(r"[\[(].*?[\])]")
PUNCTUATION = re.compile(r"[\s_\-./\\:#*'\"]+")


def plain_word(text: str) -> str:
    """Return a word for comparison: `Date/Time [UTC]` and `date_time` are both `datetime`."""
    if len(text) > LONGEST_WORD:
        return text
    shorter = BRACKETED.sub("", text) or text
    return PUNCTUATION.sub("", unicodedata.normalize("NFKC", shorter)).casefold()


def _words(text: str) -> frozenset[str]:
    return frozenset(plain_word(word) for word in text.split(","))


# -- columns ----------------------------------------------------------------------------------

TIME_NAMES: Final = _words(
    "time,timestamp,datetime,date,ts,t_stamp,epoch,time utc,utc time,utc,local time,sample time,"
    "event time,record time,source time,source timestamp,date and time,when,"
    "Zeit,Zeitstempel,Datum,Datum Zeit,Datum Uhrzeit,Datum und Uhrzeit,Uhrzeit,Zeitpunkt,"
    "Messzeitpunkt,horodatage,horodate,date heure,date et heure,heure,temps,"
    "fecha,fecha hora,fecha y hora,hora,marca de tiempo,tiempo,"
    "tijd,tijdstip,tijdstempel,datum tijd,datum en tijd,data ora,"
    "时间,日期,日期时间,时间戳,采样时间,采集时间,时刻"
)
DATE_NAMES: Final = _words("date,Datum,fecha,日期,day,Tag,jour,dia,día,dag")
TIME_OF_DAY_NAMES: Final = _words(
    "time,Zeit,Uhrzeit,heure,hora,tijd,时间,时刻,time of day,clock,hour"
)
TAG_NAMES: Final = _words(
    "tag,tag name,tag id,tag path,name,point,point name,point id,sensor,signal,variable,parameter,"
    "channel,item,item id,item name,path,metric,series,measurement,_field,Messstelle,Kennzeichen,"
    "Variable,Bezeichnung,Kanal,KKS,point de mesure,repère,étiquette,nom,punto,señal,etiqueta,"
    "nombre,meetpunt,naam,位号,测点,标签,点名,变量"
)
VALUE_NAMES: Final = _words(
    "value,val,vvalue,reading,data value,_value,Wert,Messwert,valeur,valor,waarde,meetwaarde,"
    "值,数值,测量值,float value,int value"
)
QUALITY_NAMES: Final = _words(
    "quality,q,qual,status,opc quality,quality detail,quality code,data integrity,good,is good,"
    "questionable,substituted,Qualität,Qualitaet,Güte,Status,Gültig,qualité,statut,validité,"
    "calidad,estado,kwaliteit,质量,质量码,状态"
)
UNIT_NAMES: Final = _words("unit,units,uom,eng units,eu,Einheit,unité,unidad,eenheid,单位")
ROW_NAMES: Final = _words("row,index,row number,line,nr,lfd nr,no,id,序号,#")
META_NAMES: Final = _words("result,table,_start,_stop,description,Beschreibung,desc,comment")
KEY_NAMES: Final = ("_measurement", "_field")
LABEL_NAMES: Final = (
    "label", "attack", "att_flag", "normal/attack", "anomaly", "class", "is_attack",
)  # fmt: skip

# -- cells ------------------------------------------------------------------------------------

MISSING_MARKS: Final = (
    "", "NaN", "nan", "NAN", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "Null", "None", "-", "--",
    "---", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND",
)  # fmt: skip
"""Marks of an empty cell."""

_STATUS: Final = _words(
    "Bad,Bad Input,Bad Data,Bad Total,Bad Quality,Bad_Quality,Bad Val,No Data,No Sample,No Result,"
    "No Good Data For Calculation,I/O Timeout,IO Timeout,Timeout,Comm Fail,Comm Error,"
    "Communication Error,Pt Created,Point Created,Scan Off,Scan Timeout,Shutdown,Intf Shut,"
    "Interface Shutdown,Configure,Not Connect,Not Connected,Disconnected,Out of Serv,"
    "Out of Service,Over Range,Under Range,Overflow,Underflow,Calc Off,Calc Failed,Calc Crash,"
    "Calc Overflow,Calc Timeout,Invalid,Invalid Data,Invalid Float,Invalid Value,Arc Offline,"
    "Arc Off-line,Archive Offline,DCS Failed,Equip Fail,Sensor Fail,Sensor Failure,Device Fail,"
    "Device Failure,Substituted,Doubtful,Unit Down,Data Loss,Access Denied,Point Not Found,"
    "Tag Not Found,Set to Bad,Snapshot Fix,Stale,Bad_Stale,Bad_NotConnected,Bad_Disabled,"
    "Bad_ConfigError,Bad_Failure,Uncertain,Unreliable,Config Error,Inp OutRange,"
    "Coercion Failed,No Lab Data,"
    "#VALUE!,#REF!,#DIV/0!,#NAME?,#NUM!,#NULL!,#ERROR,#FIELD!,#CALC!,#GETTING_DATA,"
    "Störung Messung,Messung gestört,ungültig,kein Wert,keine Daten,Drahtbruch,"
    "invalide,pas de donnée,pas de données,défaut capteur,sin datos,inválido,error de "
    "comunicación,geen data,geen gegevens,ongeldig,无数据,无效,坏值,通讯故障,断线"
)
_FAULTS: Final = _words(
    "Error,Fault,Failed,Fail,Fehler,Störung,erreur,défaut,fallo,fout,storing,故障"
)
"""A missing reading in a column of numbers; what it means among states, only the plant knows."""
_CODED_STATUS = re.compile(r"\[-\d{1,6}\].*|bad[_ ].*|uncertain[_ ].*|error[ :].*", re.IGNORECASE)


def is_status(text: str, *, among_numbers: bool) -> bool:
    """Return whether a cell has a historian's word for a missing reading."""
    word = plain_word(text)
    if among_numbers and word in _FAULTS:
        return True
    return word in _STATUS or _CODED_STATUS.fullmatch(text.strip()) is not None


TRUTH: Final = {"true": 1.0, "false": 0.0}

STATES: Final = {
    **dict.fromkeys(
        _words(
            "off,stop,stopped,closed,close,shut,inactive,idle,disabled,no,not running,"
            "aus,halt,zu,geschlossen,steht,gestoppt,nein,inaktiv,"
            "arrêt,arret,arrêté,fermé,ferme,fermée,hors,non,"
            "apagado,apagada,parado,parada,paro,cerrado,cerrada,"
            "uit,gestopt,dicht,gesloten,nee,"
            "关,关闭,停,停止,停机,否,已关,已停"
        ),
        0,
    ),
    **dict.fromkeys(
        _words(
            "on,run,running,start,started,open,opened,active,enabled,yes,"
            "ein,an,läuft,lauf,auf,offen,geöffnet,betrieb,in betrieb,ja,aktiv,"
            "marche,en marche,ouvert,ouverte,oui,"
            "encendido,encendida,marcha,en marcha,abierto,abierta,"
            "aan,draait,open,"
            "开,开启,打开,运行,启动,是,已开,运转"
        ),
        1,
    ),
    **dict.fromkeys(
        _words(
            "moving,opening,closing,travel,traveling,travelling,transit,in transit,intermediate,"
            "fährt,öffnet,schließt,zwischenstellung,en mouvement,en movimiento,beweegt,动作中"
        ),
        2,
    ),
}
"""States by word: 0 is off or closed, 1 is on or open, 2 is moving."""

GOOD_WORDS: Final = _words(
    "good,ok,true,valid,g,gut,gültig,bon,bonne,valide,bueno,buena,goed,geldig,好,良好,正常,有效,"
    "good_unspecified,good_provisional,good non-specific"
)
BAD_WORDS: Final = _words(
    "bad,false,invalid,b,uncertain,questionable,doubtful,stale,schlecht,ungültig,fehler,unsicher,"
    "mauvais,mauvaise,invalide,malo,mala,slecht,ongeldig,坏,无效,异常,不良,error,fail,failed,"
    "comm fail,not connected,substituted"
)

# -- units ------------------------------------------------------------------------------------

_PREFIXES: Final = {
    "": 1.0,
    "m": 1e-3,
    "c": 1e-2,
    "d": 1e-1,
    "k": 1e3,
    "h": 1e2,
    "M": 1e6,
    "µ": 1e-6,
}
_PREFIXED: Final = {
    "m": "m c d k µ", "Pa": "m k h M", "bar": "m", "A": "m k µ", "V": "m k", "W": "m k M",
    "Wh": "k M", "Hz": "k", "g": "m k", "S/cm": "m µ", "g/l": "m µ", "L": "m d h", "s": "m",
}  # fmt: skip
_OTHERS: Final = (
    "%", "°C", "°F", "K", "m3", "m3/h", "m3/d", "m3/s", "m3/min", "L/s", "L/min", "L/h", "mL/min",
    "gpm", "MGD", "mgd", "ft", "in", "psi", "psig", "mmH2O", "mWS", "mH2O", "mca", "atm", "rpm",
    "1/min", "U/min", "tr/min", "min", "h", "d", "pH", "NTU", "FNU", "FTU", "ppm", "ppb", "m/s",
    "t/h", "kg/h", "kg/m3", "var", "kvar", "kVA", "mg/L", "µg/L", "g/L", "Nm3/h", "MLD", "l/h",
)  # fmt: skip
_SPELLINGS: Final = (("³", "3"), ("²", "2"), ("^", ""), ("μ", "µ"), ("uS/", "µS/"), ("ug/", "µg/"))


def spelt_unit(text: str) -> str:
    """Return a unit in one spelling: `m³/h` is `m3/h`."""
    for written, ours in _SPELLINGS:
        text = text.replace(written, ours)
    if text.startswith("l/"):
        text = "L" + text[1:]
    return text.replace("g/l", "g/L")


UNITS: Final[dict[str, tuple[str, float]]] = {
    **{spelt_unit(unit): (spelt_unit(unit), 1.0) for unit in _OTHERS},
    **{
        prefix + base: (base, _PREFIXES[prefix])
        for base, prefixes in _PREFIXED.items()
        for prefix in ("", *prefixes.split())
    },
    "mg/L": ("g/L", 1e-3),
    "µg/L": ("g/L", 1e-6),
    "l": ("L", 1.0),
}
"""Units by spelling: the unit that they are a multiple of, and the factor."""


def is_unit(text: str) -> bool:
    """Return whether a text is a unit, with or without brackets."""
    bare = text.strip().strip("[]()").strip()
    return spelt_unit(bare) in UNITS


# -- months -----------------------------------------------------------------------------------

MONTHS: Final = {
    plain_word(name): number
    for number, names in enumerate(
        (
            "jan,january,januar,jän,jänner,janv,janvier,ene,enero,januari",
            "feb,february,februar,févr,fev,fevr,février,febrero,februari",
            "mar,march,mär,mrz,märz,mars,marzo,mrt,maart",
            "apr,april,avr,avril,abr,abril",
            "may,mai,mayo,mei",
            "jun,june,juni,juin,junio",
            "jul,july,juli,juil,juillet,julio",
            "aug,august,août,aout,ago,agosto,augustus",
            "sep,sept,september,septembre,septiembre",
            "oct,october,okt,oktober,octobre,octubre",
            "nov,november,novembre,noviembre",
            "dec,december,dez,dezember,déc,décembre,dic,diciembre",
        ),
        start=1,
    )
    for name in names.split(",")
}
